"""Runs the conformance cases of the onnx package: python tests/conformance [PATTERN ...]"""

import argparse
import collections
import fnmatch
import os
import pathlib
import sys
import time

import cases
import execute
import expected


def parse():
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="run the cases whose name matches one of these (* and ? allowed)")
    parser.add_argument("--module", default=os.environ.get("EPONA_TEST_MODULE", "epona"), help="Python module to test")
    parser.add_argument("--jobs", type=int, help="worker processes; default: one a processor")
    parser.add_argument("--level", help="graph optimisation level, such as ORT_DISABLE_ALL")
    parser.add_argument(
        "--list", type=pathlib.Path, default=expected.PATH, help="the expected failures; those of a provider are also these"
    )
    parser.add_argument("--update", action="store_true", help="rewrite the list")
    parser.add_argument("--all-failures", action="store_true", help="print expected failures too, with their errors")
    return parser.parse_args()


def main():
    args = parse()
    begin = time.monotonic()
    chosen = cases.load_cases()
    if args.patterns:
        chosen = [c for c in chosen if any(fnmatch.fnmatch(c.name, p) for p in args.patterns)]

    def progress(done, total):
        if sys.stderr.isatty() and (done % 20 == 0 or done == total):
            print(f"\r{done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    results = execute.run_cases(chosen, args.module, args.jobs, args.level, progress)
    passed, known, failures, passes = expected.judge(results, expected.read() | expected.read(args.list))
    if args.all_failures:
        for name in known:
            print(f"expected  {name}: {results[name]}")
    for name in failures:
        print(f"FAILED    {name}: {results[name]}")
    for name in passes:
        print(f"PASSED    {name}: it is listed in {args.list.name}")
    kinds = collections.Counter(c.kind for c in chosen)
    good = collections.Counter(c.kind for c in chosen if results[c.name] is None)
    print("passed:", ", ".join(f"{kind} {good[kind]}/{count}" for kind, count in kinds.items()))
    print(
        f"conformance of {args.module}: {len(passed) + len(passes)} of {len(results)} pass, {len(known)} fail as expected, "
        f"{len(failures)} unexpected failures, {len(passes)} unexpected passes, {time.monotonic() - begin:.0f} s"
    )
    if args.update:
        if args.list != expected.PATH:
            results = {name: error for name, error in results.items() if name not in expected.read()}
        expected.write(results, args.list)
        return 0
    return 1 if failures or passes else 0


if __name__ == "__main__":
    sys.exit(main())
