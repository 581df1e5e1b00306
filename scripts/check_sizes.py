#!/usr/bin/env python3
"""Report lines per folder and fail when a file of ours has more than 800."""

import collections
import pathlib
import subprocess
import sys

LIMIT = 800
SUFFIXES = {".cc", ".h", ".py", ".pyi", ".cmake", ".md", ".case", ".map", ".sh", ".txt", ".toml", ".json", ".yml"}


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, check=True, text=True,
        stdout=subprocess.PIPE,
    ).stdout.splitlines()
    folders = collections.defaultdict(list)
    for name in names:
        path = root / name
        if path.suffix in SUFFIXES and path.is_file():
            lines = path.read_bytes().count(b"\n")
            folder = "/".join(pathlib.PurePosixPath(name).parts[:-1][:2]) or "."
            folders[folder].append((lines, name))
    print(f"{'folder':<28}{'files':>7}{'lines':>8}{'median':>8}{'largest':>9}")
    total_files = total_lines = 0
    too_long = []
    for folder, files in sorted(folders.items()):
        files.sort()
        lines = sum(n for n, _ in files)
        print(f"{folder:<28}{len(files):>7}{lines:>8}{files[len(files) // 2][0]:>8}{files[-1][0]:>9}")
        total_files += len(files)
        total_lines += lines
        # Results (lists, tables) may be long; text that people read may not.
        too_long += [(n, name) for n, name in files if n > LIMIT and not name.endswith((".txt", ".json"))]
    print(f"{'total':<28}{total_files:>7}{total_lines:>8}")
    for lines, name in too_long:
        print(f"{name}: {lines} lines, the limit is {LIMIT}", file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
