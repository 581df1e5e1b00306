#!/usr/bin/env python3
"""Fail when a built library exports a name that it should not, or lacks one that it should have.

With no arguments: libepona.so and the Python extension under build/release.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# What each kind of library may export, as demangled names.
ALLOWED = {
    "libepona": [
        # the public C++ API, with the run-time type information of its classes
        r"(typeinfo (name )?for |vtable for )?epona::(?!detail::)[A-Za-z_]\w*.*",
        # the C ABI
        r"OrtGetApiBase",
        r"OrtSessionOptionsAppendExecutionProvider_\w+",
    ],
    "_epona": [r"PyInit__epona"],
}
REQUIRED = {"libepona": r"epona::version\(\)", "_epona": r"PyInit__epona"}


def exported(path):
    out = subprocess.run(["nm", "-D", "-C", "--defined-only", str(path)], check=True, text=True, stdout=subprocess.PIPE)
    return [line.split(" ", 2)[2] for line in out.stdout.splitlines()]


def needed(path):
    out = subprocess.run(["readelf", "-d", str(path)], check=True, text=True, stdout=subprocess.PIPE)
    return re.findall(r"NEEDED.*\[(.*)\]", out.stdout)


def check(path):
    kind = path.name.split(".")[0]
    names = exported(path)
    allowed = re.compile("|".join(f"(?:{p})" for p in ALLOWED[kind]))
    problems = [f"exports {name}" for name in names if not allowed.fullmatch(name)]
    if not any(re.fullmatch(REQUIRED[kind], name) for name in names):
        problems.append(f"does not export {REQUIRED[kind]}")
    # Nothing but the C and C++ run-time libraries may be needed.
    system = re.compile(r"(libstdc\+\+|libgcc_s|libm|libc|libdl|libpthread|librt|ld-linux-x86-64)\.so.*")
    problems += [f"needs {name}" for name in needed(path) if not system.fullmatch(name)]
    for problem in problems[:20]:
        print(f"{path.name}: {problem}", file=sys.stderr)
    if len(problems) > 20:
        print(f"{path.name}: and {len(problems) - 20} more", file=sys.stderr)
    print(f"{path.name}: {len(names)} exported names, {len(problems)} problems")
    return not problems


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release")
    args = parser.parse_args()
    libraries = args.libraries or [args.build / "libepona.so", *args.build.glob("python/epona/_epona*.so")]
    return 0 if all([check(path) for path in libraries]) else 1


if __name__ == "__main__":
    sys.exit(main())
