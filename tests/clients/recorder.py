"""recorder.py OUT SCRIPT: run a script on onnxruntime and keep what its sessions were fed and gave."""

import os
import pickle
import runpy
import sys

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_inference_collection as collection

RUNS, SESSIONS = 3, 60  # per session, and sessions
BYTES = 64 << 20

records, budget = [], [BYTES]


def plain(value):
    return value.copy() if isinstance(value, np.ndarray) else value


def size(value):
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(size, value.values() if isinstance(value, dict) else value)) if isinstance(value, (dict, list)) else 8


def run(self, output_names, input_feed, run_options=None):
    feed = {name: plain(value) for name, value in input_feed.items()}
    results = original(self, output_names, input_feed, run_options)
    if not hasattr(self, "_record") and len(records) < SESSIONS:
        self._record = {"path": self._model_path, "bytes": self._model_bytes, "runs": []}
        records.append(self._record)
    record = getattr(self, "_record", None)
    if record is not None and len(record["runs"]) < RUNS:
        budget[0] -= size(feed) + size(results)
        if budget[0] > 0:
            record["runs"].append((list(output_names or []), feed, [plain(result) for result in results]))
            if record["bytes"] is None and not os.path.exists(str(record["path"]) + ".kept"):
                # Scripts delete models that they made.
                with open(record["path"], "rb") as file:
                    record["bytes_of_path"] = file.read()
    return results


assert "epona" not in sys.modules and onnxruntime.InferenceSession.__module__.startswith("onnxruntime")
original = collection.Session.run
collection.Session.run = run
target, script = sys.argv[1:3]
sys.argv = [script]
sys.path[0] = os.path.dirname(os.path.abspath(script))
try:
    runpy.run_path(script, run_name="__main__")
finally:
    sys.stdout.flush()
    with open(target, "wb") as file:
        pickle.dump(records, file)
