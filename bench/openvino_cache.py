"""How much sooner a session starts with the OpenVINO provider's cache: each creation in a process of its own.

    python bench/openvino_cache.py [MODEL...] [--repeat 3]

For every core model: creation without cache_dir, the first with it (which fills it), and a later one; wall milliseconds,
minima of the repeats, and the ratios of the first and of the plain creation to the later one. Results must be the same bits.
Last, the same ratio of OpenVINO's own Python package with its own cache (its import not counted): nearly all that is left of
a later start is spent in OpenVINO's import of the compiled model.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "scripts")]

from model_builders import catalog  # noqa: E402
from model_builders.build import model_path  # noqa: E402

CREATE = """
import hashlib, json, sys, time
sys.path[:0] = json.loads(sys.argv[1])
import numpy as np
import epona
from model_builders import inputs
name, path, folder = sys.argv[2:]
options = epona.SessionOptions()
options.intra_op_num_threads = 2
options.log_severity_level = 2
settings = {"cache_dir": folder} if folder else {}
start, used = time.perf_counter(), time.process_time()
session = epona.InferenceSession(path, options, providers=[("OpenVINOExecutionProvider", settings), "CPUExecutionProvider"])
wall, cpu = time.perf_counter() - start, time.process_time() - used
digest = hashlib.sha256()
for output in session.run(None, inputs.default_feed(name)):
    digest.update(output.tobytes() if hasattr(output, "tobytes") else repr(output).encode())
taken = session.get_placement()
share = sum(row["provider"] == "OpenVINOExecutionProvider" for row in taken) / max(1, len(taken))
print(json.dumps([wall * 1e3, cpu * 1e3, digest.hexdigest(), share]))
"""

THEIRS = """
import json, sys, time
import openvino
name, path, folder = sys.argv[2:]
settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 2, "PERFORMANCE_HINT": "LATENCY"}
start, used = time.perf_counter(), time.process_time()
core = openvino.Core()
core.set_property({"CACHE_DIR": folder})
core.compile_model(path, "CPU", settings)
print(json.dumps([(time.perf_counter() - start) * 1e3, (time.process_time() - used) * 1e3]))
"""


def create(name, folder, code=CREATE):
    paths = json.dumps([path for path in sys.path if path])
    command = [sys.executable, "-c", code, paths, name, str(model_path(name)), folder]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr)
    if done.stderr.strip():
        print(done.stderr.strip())
    return json.loads(done.stdout.strip().splitlines()[-1])


def best(rows):
    return min(row[0] for row in rows), min(row[1] for row in rows)


def measure(name, repeat):
    plain, first, later, own_first, own_later = [], [], [], [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            plain.append(create(name, ""))
            first.append(create(name, folder))
            later += [create(name, folder) for _ in range(2)]
            size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        with tempfile.TemporaryDirectory() as folder:
            own_first.append(create(name, folder, THEIRS))
            own_later += [create(name, folder, THEIRS) for _ in range(2)]
    same = len({row[2] for row in plain + first + later}) == 1
    return best(plain), best(first), best(later), best(own_first), best(own_later), size, plain[0][3], same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    names = options.models or [model.name for model in catalog.select(None, "core") if not model.name.startswith("skl_")]
    print(f"{'wall (cpu) ms':34s} {'taken':>5s} {'MB':>6s} {'no cache':>12s} {'first':>12s} {'later':>12s}  first/later")
    worst = None
    for name in names:
        plain, first, later, own_first, own_later, size, share, same = measure(name, options.repeat)
        ratio = first[0] / later[0]
        cells = " ".join(f"{wall:6.0f} ({cpu:4.0f})" for wall, cpu in (plain, first, later))
        notes = f"{ratio:5.1f} (cpu {first[1] / later[1]:4.1f}); no cache/later {plain[0] / later[0]:4.1f}"
        notes += f"; OpenVINO {own_first[0]:.0f}/{own_later[0]:.0f} = {own_first[0] / own_later[0]:.1f}"
        print(f"{name:34s} {share:5.0%} {size:6.1f} {cells}  {notes}{'' if same else '  RESULTS DIFFER'}", flush=True)
        if share > 0.5:
            worst = min(worst or ratio, ratio)
    if worst:
        print(f"smallest first/later where OpenVINO has most nodes: {worst:.1f}")


if __name__ == "__main__":
    main()
