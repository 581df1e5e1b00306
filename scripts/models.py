#!/usr/bin/env python3
"""Builds or fetches the models of the tests and benchmarks into models/ (or $EPONA_MODELS).

    scripts/models.py                 all of them: about 4.2 GB, a few minutes
    scripts/models.py --list          names, kinds, marks, what is there
    scripts/models.py --only NAME     these and what they are made from
    scripts/models.py --mark core     those with a mark

A second run only makes what is missing or has a changed recipe. manifest.json holds the sha256 of every file.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from model_builders import catalog  # noqa: E402
from model_builders.build import build, fingerprint, model_path, models_dir, sha256_of, wheels_of  # noqa: E402


class Manifest:
    def __init__(self, path):
        self.path = path
        self.entries = json.loads(path.read_text()) if path.exists() else {}

    def is_current(self, model):
        """The file's size stands for its content: hashing 4 GB at every start costs more than building some models."""
        entry, path = self.entries.get(model.name), model_path(model.name)
        return bool(
            entry
            and path.exists()
            and entry["size"] == path.stat().st_size
            and entry["fingerprint"] == fingerprint(model)
        )

    def record(self, model, path):
        self.entries[model.name] = {
            "sha256": sha256_of(path),
            "size": path.stat().st_size,
            "fingerprint": fingerprint(model),
            "kind": model.kind,
            "marks": sorted(model.marks),
        }
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.entries, indent=1, sort_keys=True) + "\n")
        partial.replace(self.path)


def with_bases(models):
    """Adds the models that others are derived from; the catalog's order puts a base before what needs it."""
    wanted = {model.name for model in models}
    for model in models:
        if isinstance(model.source, catalog.Derived):
            wanted.add(model.source.base)
    return [model for model in catalog.MODELS if model.name in wanted]


def print_list(manifest):
    for model in catalog.MODELS:
        state = "ready" if manifest.is_current(model) else "missing"
        print(f"{model.name:34} {model.kind:10} {' '.join(sorted(model.marks)):12} {state}")


def make(models, manifest):
    folder = models_dir()
    folder.mkdir(parents=True, exist_ok=True)
    wheels = folder / "wheels"
    todo = [model for model in models if not manifest.is_current(model)]
    for index, model in enumerate(todo, 1):
        start = time.monotonic()
        print(f"[{index}/{len(todo)}] {model.name} ...", flush=True)
        # Built under another name: an interrupted run leaves no half file that looks whole.
        partial = folder / f"{model.name}.partial.onnx"
        build(model, partial, wheels)
        partial.replace(model_path(model.name))
        manifest.record(model, model_path(model.name))
        size = model_path(model.name).stat().st_size / 1e6
        print(f"[{index}/{len(todo)}] {model.name}: {size:.1f} MB, {time.monotonic() - start:.1f} s", flush=True)
        needed = {wheel for later in todo[index:] for wheel in wheels_of(later)}
        for wheel in set(wheels_of(model)) - needed:
            for path in wheels.glob(f"{wheel.module}-*.whl"):
                path.unlink()
    shutil.rmtree(wheels, ignore_errors=True)
    print(f"{len(models)} models in {folder}, {len(todo)} made now")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the models and stop")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these models (and what they are derived from)")
    parser.add_argument("--mark", choices=("core", "bench"), help="the models with this mark")
    arguments = parser.parse_args()
    manifest = Manifest(models_dir() / "manifest.json")
    if arguments.list:
        print_list(manifest)
    else:
        make(with_bases(catalog.select(arguments.only, arguments.mark)), manifest)


if __name__ == "__main__":
    # Some converters walk sets of strings: with a fixed hash seed their output is the same every time.
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    main()
