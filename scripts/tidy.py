#!/usr/bin/env python3
"""tidy.py BUILD FILE...: clang-tidy on the sources given, with the flags of BUILD/compile_commands.json.

Most of clang-tidy's time on one source goes into the headers it includes. So sources with the same flags are joined, up
to 24, and checked as one. Names that two of them keep to themselves get a number; a source that still does not go with
those before it waits for the next round. Environment: JOBS (how many at a time), CHECKS (added to those of .clang-tidy).

A source over which clang-tidy itself ends with a signal is found by halves and reported.
"""
import itertools
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

AT_ONCE = 24
GCC_ONLY = {"-fno-tree-pre", "-Winvalid-pch"}
# A SIMD kernel is parsed once, for AVX2, and not once for each target.
SIMD = ["-DHWY_COMPILE_ONLY_STATIC"]
if platform.machine() == "x86_64":
    SIMD += ["-march=haswell", "-maes", "-mpclmul"]
# States that the analyzer visits in one function. Its own limit, three times this, takes up to three times as long: the
# functions with a switch over the element types come to it.
ANALYZER = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=75000"]
CLASH = re.compile(r"redefinition of (?:enumerator )?'(?:\w+::)*(\w+)'|'(?:\w+::)*(\w+)' is ambiguous"
                   r"|redefinition with different types \('\w+")


def flags_of(entry):
    """The flags that matter to the parser; relative paths were resolved by CMake. g++'s precompiled headers are left out."""
    words = shlex.split(entry["command"])[1:]
    skip = {i + 1 for i, word in enumerate(words) if word == "-o"}
    skip |= {j for i, word in enumerate(words) if word.endswith("/cmake_pch.hxx") for j in (i - 1, i)}
    return tuple(w for i, w in enumerate(words)
                 if i not in skip and w not in {"-o", "-c", entry["file"]} | GCC_ONLY)


class Batch:
    """Sources joined in one file, and the way back from its lines to theirs."""

    def __init__(self, path, flags, files):
        self.path, self.files = path, files
        self.flags = [*flags, *("-iquote" + d for d in sorted({str(Path(f).parent) for f in files}))]
        self.renamed = {file: set() for file in files}
        self.simd = "hwy/foreach_target.h" in Path(files[0]).read_text()
        if self.simd:
            self.flags += SIMD

    def write(self):
        self.starts, line = [], 1
        with open(self.path, "w") as out:
            for number, file in enumerate(self.files):
                text = Path(file).read_text()
                for name in self.renamed[file]:
                    text = re.sub(rf"(?<![.>\w])(?<!#include \")\b{name}\b(?![/.\w]*\")", f"{name}_{number}", text)
                self.starts.append((line, file))
                out.write(text)
                line += text.count("\n")

    def where(self, line):
        start, file = max(s for s in self.starts if s[0] <= line)
        return file, line - start + 1

    def settle(self):
        """Renames and drops sources until the rest parse together; returns those dropped."""
        dropped = []
        while len(self.files) > 1:
            self.write()
            run = subprocess.run(["clang++", "-fsyntax-only", "-w", "-ferror-limit=0", *self.flags, self.path],
                                 capture_output=True, text=True)
            if run.returncode == 0:
                return dropped
            names = {}
            for line, message in re.findall(rf"^{re.escape(self.path)}:(\d+):\d+: (?:fatal )?error: (.*)", run.stderr, re.M):
                clash = CLASH.search(message)
                names.setdefault(self.where(int(line))[0], set()).add(clash and (clash[1] or clash[2]))
            bad = [f for f in self.files if f in names and not names[f] - self.renamed[f] - {None}]
            for file in names.keys() - set(bad):
                self.renamed[file] |= names[file] - {None}
            if not names:  # An error in a header: clang-tidy reports it with the first source.
                bad = self.files[1:]
            if bad == self.files:
                bad = bad[1:]
            dropped += bad
            self.files = [f for f in self.files if f not in bad]
        self.renamed = {file: set() for file in self.files}
        self.write()
        return dropped

    def check(self):
        checks = os.environ.get("CHECKS")
        run = subprocess.run(["clang-tidy", "--quiet", "--config-file=.clang-tidy", "--warnings-as-errors=*",
                              *(["--checks=" + checks] if checks else []), self.path, "--", *self.flags, *ANALYZER],
                             capture_output=True, text=True)
        text = re.sub(rf"{re.escape(self.path)}:(\d+)", lambda m: "{}:{}".format(*self.where(int(m[1]))), run.stdout)
        if run.returncode and not text:
            text = f"{self.files[0]}:1:1: error: clang-tidy ends with {run.returncode}\n{run.stderr}"
        return run.returncode, text, run.returncode < 0


def main():
    build, *wanted = sys.argv[1:]
    wanted = {str(Path(file).resolve()) for file in wanted}
    groups = {}
    for entry in json.loads(Path(build, "compile_commands.json").read_text()):
        if entry["file"] in wanted:
            wanted.discard(entry["file"])
            # Highway's dispatch works on one source.
            alone = entry["file"] if "foreach_target.h" in Path(entry["file"]).read_text() else ""
            groups.setdefault((flags_of(entry), alone), []).append(entry["file"])
    scratch = TemporaryDirectory(dir=Path(build).resolve(), prefix="tidy_")
    folder = Path(scratch.name)
    count = sum(map(len, groups.values()))
    made = itertools.count()
    lock, seen = Lock(), set()

    def work(flags, files):
        failed = False
        while files:
            batch = Batch(str(folder / f"joined_{next(made)}.cc"), flags, files)
            files = batch.settle()
            start = time.monotonic()
            code, text, crashed = batch.check()
            if crashed and len(batch.files) > 1:  # Halves find the source over which it does.
                half = len(batch.files) // 2
                failed |= work(flags, batch.files[:half]) | work(flags, batch.files[half:])
                continue
            failed |= code != 0
            with lock:
                # A finding in a header comes with every batch that includes it.
                for finding in re.split(r"\n(?=/\S+:\d+:\d+: (?:error|warning):)", text.strip()):
                    if finding and finding not in seen:
                        print(finding.replace(f"{Path.cwd()}/", ""))
                    seen.add(finding)
                print(f"  {len(batch.files)} sources, {time.monotonic() - start:.0f} s: {'findings' if code else 'clean'}",
                      flush=True)
        return failed

    parts = [(flags, files[i:i + AT_ONCE]) for (flags, _), files in groups.items() for i in range(0, len(files), AT_ONCE)]
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        failed = any(list(pool.map(lambda part: work(*part), parts)))
    print(f"lint: {count} sources checked")
    sys.exit(failed)


if __name__ == "__main__":
    main()
