"""The list of cases that are known to fail: one a line, `NAME  # reason`."""

import pathlib

PATH = pathlib.Path(__file__).with_name("expected_failures.txt")
HEADER = """\
# Cases of tests/conformance that are expected to fail, with the reason. Compared exactly: a listed case that passes
# fails the run, and so does a case that fails and is not listed. A reason that begins with "random" allows both: such a
# case may pass by chance. `python tests/conformance --update` rewrites the list and keeps the reasons that are there.
"""


def read(path=PATH):
    listed = {}
    if path.exists():
        for line in path.read_text().splitlines():
            name, _, reason = line.partition("#")
            if name.strip():
                listed[name.strip()] = reason.strip()
    return listed


def write(results, path=PATH):
    """Lists what failed in `results`; cases that were not run keep their line."""
    old = read(path)
    lines = {name: reason for name, reason in old.items() if name not in results}
    lines |= {name: reason for name, reason in old.items() if is_random(reason)}
    lines |= {name: old.get(name) or error for name, error in results.items() if error is not None}
    path.write_text(HEADER + "".join(f"{name}  # {lines[name]}\n" for name in sorted(lines)))


def is_random(reason):
    return reason.startswith("random")


def judge(results, listed):
    """(passed, failed as expected, unexpected failures, unexpected passes), as sorted lists of names."""
    results = {n: e or "passed by chance" if is_random(listed.get(n, "")) else e for n, e in results.items()}
    failed = {name for name, error in results.items() if error is not None}
    return (
        sorted(set(results) - failed - set(listed)),
        sorted(failed & set(listed)),
        sorted(failed - set(listed)),
        sorted((set(results) - failed) & set(listed)),
    )
