"""One engine on one model in a process of its own: so that memory is counted and thread pools do not meet.

    engine_worker.py ENGINE MODEL FEEDS.npz THREADS

Speaks JSON lines: reports when it is ready, then answers each {"seconds": S, "runs": N} on standard input with the
times of its runs, and the end of input with a last report on memory and creation.
"""

import gc
import importlib
import json
import os
import sys
import time

import numpy as np


def memory_mb(field):
    """VmHWM is the most the process ever held, VmRSS what it holds."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return float("nan")


class OnnxRuntimeApi:
    """onnxruntime, and Epona, which has the same interface."""

    def __init__(self, module, threads):
        self.module = importlib.import_module(module)
        self.threads = threads

    def version(self):
        return self.module.__version__

    def create(self, path):
        options = self.module.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = self.module.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, feed):
        return self.session.run(None, feed)

    def release(self):
        self.session = None


class OpenVino:
    """Single precision: its default is bfloat16 where the processor has it."""

    def __init__(self, threads):
        self.module = importlib.import_module("openvino")
        self.settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
        }

    def version(self):
        return self.module.__version__.split("-")[0]

    def create(self, path):
        core = self.module.Core()
        self.request = core.compile_model(path, "CPU", self.settings).create_infer_request()

    def run(self, feed):
        return self.request.infer(feed, share_inputs=True, share_outputs=True)

    def release(self):
        self.request = None


def make_engine(name, threads):
    return OpenVino(threads) if name == "openvino" else OnnxRuntimeApi(name, threads)


def timed(call, *arguments):
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def run_for(engine, feed, seconds, runs):
    """Runs until both the time and the number of runs are reached, or four times the time has gone."""
    times, start = [], time.perf_counter()
    while True:
        times.append(timed(engine.run, feed))
        elapsed = time.perf_counter() - start
        if (elapsed >= seconds and len(times) >= runs) or elapsed >= 4 * seconds:
            return times


def main():
    name, path, feeds, threads = sys.argv[1:]
    # Libraries print on standard output; the reports have it to themselves.
    reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def report(**values):
        print(json.dumps(values), file=reports, flush=True)

    with np.load(feeds) as stored:
        feed = {key: stored[key] for key in stored.files}
    baseline = memory_mb("VmRSS")
    try:
        engine = make_engine(name, int(threads))
        creation = [timed(engine.create, path)]
        first_run = timed(engine.run, feed)
    except Exception as error:  # any refusal of the engine is a result
        report(error=(str(error).strip() or repr(error)).splitlines()[-1][:200])
        return
    run_for(engine, feed, min(0.2, 2 * first_run), 2)
    report(version=engine.version(), first_run=first_run)
    for line in sys.stdin:
        command = json.loads(line)
        report(times=run_for(engine, feed, command["seconds"], command["runs"]))
    peak = memory_mb("VmHWM")
    # The first creation also loads parts of the library; two more after memory has been read.
    for _ in range(2 if creation[0] < 3 else 0):
        engine.release()
        gc.collect()
        creation.append(timed(engine.create, path))
    report(peak_mb=peak, baseline_mb=baseline, create=creation)


if __name__ == "__main__":
    main()
