#!/usr/bin/env python3
"""Write python/epona/_epona.pyi from the extension that is on the path. `--check` fails when the file is out of date."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

STUB = pathlib.Path(__file__).resolve().parent.parent / "python/epona/_epona.pyi"


def generate():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "stub.pyi"
        command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "epona._epona", "-o", path]
        subprocess.run(command, check=True)
        text = path.read_text(encoding="utf-8")
    # Methods that session_options.py adds look like imports of the module: make them members of their classes.
    block = re.search(r"^from epona\.session_options import \(\n(.*?)^\)\n", text, re.M | re.S)
    text = text.replace(block.group(), "from epona import session_options as _options\n")
    names = re.findall(r"(\w+) as", block.group(1))
    for owner, members in (
        ("RunOptions", [name for name in names if name == "add_active_adapter"]),
        ("SessionOptions", [name for name in names if name not in ("add_active_adapter", "add_provider")]),
    ):
        lines = "".join(f"\n    {name} = _options.{name}\n" for name in members)
        if owner == "SessionOptions":
            lines += "\n    def add_provider(self, name: str, options: Mapping[str, str]) -> None:\n"
            lines += '        """Adds a provider with options, after those added before."""\n'
        start = text.index(f"class {owner}:")
        end = re.compile(r"^(?=class |def )", re.M).search(text, start + 1).start()
        text = text[:end].rstrip("\n") + "\n" + lines + "\n" + text[end:]
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    text = generate()
    if not parser.parse_args().check:
        STUB.write_text(text, encoding="utf-8")
        return 0
    if STUB.read_text(encoding="utf-8") != text:
        print(f"{STUB.name} is out of date: run scripts/make_stubs.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
