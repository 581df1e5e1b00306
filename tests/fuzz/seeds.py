#!/usr/bin/env python3
"""seeds.py OUT [FOLDER...]: write the models of all .case files (of src and tests/cases) into OUT, one file each."""

import hashlib
import pathlib
import re
import sys

import onnx.parser

ROOT = pathlib.Path(__file__).resolve().parents[2]


def models(path):
    """The model texts of a .case file: from a line that starts with `model` to the next keyword at a line's start."""
    text = path.read_text()
    keyword = r"(?:case|feed|want|tolerance|fails|keep|becomes)\b"
    for match in re.finditer(rf"^model\b(.*?)(?=^{keyword}|\Z)", text, re.M | re.S):
        yield match.group(1).strip()


def main():
    out = pathlib.Path(sys.argv[1])
    folders = [pathlib.Path(f) for f in sys.argv[2:]] or [ROOT / "src", ROOT / "tests/cases"]
    out.mkdir(parents=True, exist_ok=True)
    written = refused = 0
    for folder in folders:
        for path in sorted(folder.rglob("*.case")):
            for text in models(path):
                try:
                    data = onnx.parser.parse_model(text).SerializeToString()
                except Exception:  # some cases are wrong on purpose
                    refused += 1
                    continue
                if len(data) <= 4096:
                    (out / hashlib.sha1(data).hexdigest()[:16]).write_bytes(data)
                    written += 1
    print(f"{written} models written to {out}, {refused} texts refused")


if __name__ == "__main__":
    main()
