"""Writes docs/providers.md from the option schemas of the installed package."""

import pathlib

from epona import _epona

PATH = pathlib.Path(__file__).resolve().parents[1] / "docs" / "providers.md"

if __name__ == "__main__":
    PATH.write_text(_epona.provider_document())
    print(f"wrote {PATH.name}")
