#!/usr/bin/env python3
"""Check the wheel in a folder: size, requirements, contents, and imports beside packages that carry protobuf too."""

import email
import itertools
import pathlib
import re
import subprocess
import sys
import zipfile

LIMIT_MB = 25
# Each is imported before and after epona where it is installed.
NEIGHBOURS = ["onnx", "onnxruntime", "torch"]


def check_contents(wheel):
    problems = []
    size = wheel.stat().st_size / 1e6
    if size > LIMIT_MB:
        problems.append(f"{size:.1f} MB, the limit is {LIMIT_MB}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = email.message_from_bytes(archive.read(next(n for n in names if n.endswith("dist-info/METADATA"))))
    required = [r for r in metadata.get_all("Requires-Dist", []) if "extra ==" not in r]
    if [re.match(r"[\w.-]+", r)[0] for r in required] != ["numpy"]:
        problems.append(f"requires {required}, expected numpy alone")
    for pattern in [r"epona/__init__\.py", r"epona/_epona\..*so", r"epona-.*\.data/scripts/epona", r".*LICENSE"]:
        if not any(re.fullmatch(pattern, name) for name in names):
            problems.append(f"has no {pattern}")
    for name in names:
        if not re.match(r"epona/|epona-[^/]*(dist-info|data/scripts)/", name):
            problems.append(f"has a stray file {name}")
    print(f"{wheel.name}: {size:.1f} MB, {len(names)} files, requires {', '.join(required)}")
    return problems


def check_imports():
    probe = "import importlib.util as u; print(*[n for n in %r if u.find_spec(n)])" % (NEIGHBOURS,)
    present = subprocess.run([sys.executable, "-c", probe], check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    problems = []
    orders = [o for o in itertools.permutations(["epona", *present])]
    for order in orders:
        run = subprocess.run([sys.executable, "-c", f"import {', '.join(order)}"], text=True, stderr=subprocess.PIPE)
        if run.returncode:
            problems.append(f"import {', '.join(order)}: {run.stderr.strip().splitlines()[-1:] or run.returncode}")
    print(f"{len(orders)} import orders of epona, {', '.join(present)}")
    return problems


def main():
    (wheel,) = pathlib.Path(sys.argv[1]).glob("epona-*.whl")
    problems = check_contents(wheel) + check_imports()
    for problem in problems:
        print(f"{wheel.name}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
