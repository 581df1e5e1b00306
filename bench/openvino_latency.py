"""Latency with the OpenVINO provider against OpenVINO's own Python package, in one process, turn by turn.

    python bench/openvino_latency.py [MODEL...] [--seconds 2] [--threads 2] [--all]

Both in float32 with the same threads, inputs shared and outputs left to the engine; minima over all turns. Models of which
OpenVINO takes only a part are left out unless --all is given.
"""

import argparse
import math
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "scripts")]

import epona  # noqa: E402
import openvino  # noqa: E402
from model_builders import catalog, inputs  # noqa: E402
from model_builders.build import model_path  # noqa: E402

NAME = "OpenVINOExecutionProvider"


def ours(path, feed, threads):
    options = epona.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = epona.InferenceSession(path, options, providers=[(NAME, {}), "CPUExecutionProvider"])
    # Nodes that vanished are nobody's.
    placed = [row["provider"] for row in session.get_placement() if row["provider"]]
    return (lambda: session.run(None, feed)), sum(provider == NAME for provider in placed) / max(1, len(placed))


def theirs(path, feed, threads):
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    if not epona_takes_bytes():
        settings["LP_TRANSFORMS_MODE"] = "NO"
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda: request.infer(feed, share_inputs=True, share_outputs=True)


def epona_takes_bytes():
    flags = Path("/proc/cpuinfo").read_text()
    return "avx512_vnni" in flags or "avx_vnni" in flags


def measure(name, seconds, threads, parts):
    path, feed = str(model_path(name)), inputs.default_feed(name)
    run, share = ours(path, feed, threads)
    if share < 1 and not parts:
        return None, share
    calls = {"ours": run, "theirs": theirs(path, feed, threads)}
    best = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        call()
    end, turns = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turns < 6:
        turns += 1
        for engine, call in calls.items():
            start = time.perf_counter()
            call()
            best[engine] = min(best[engine], time.perf_counter() - start)
    return best, share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    names = options.models or [model.name for model in catalog.select(None, "core") if not model.name.startswith("skl_")]
    ratios = []
    for name in names:
        try:
            best, share = measure(name, options.seconds, options.threads, options.all)
        except Exception as error:
            print(f"{name:34s} {str(error).splitlines()[-1][:80]}", flush=True)
            continue
        if best is None:
            print(f"{name:34s} only {share:.0%} of the nodes taken", flush=True)
            continue
        ratio = best["ours"] / best["theirs"]
        ratios.append(ratio)
        print(f"{name:34s} {best['ours'] * 1e3:9.3f} ms, OpenVINO {best['theirs'] * 1e3:9.3f} ms: {ratio:.2f}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.2f}, largest {max(ratios):.2f}, of {len(ratios)} models")


if __name__ == "__main__":
    main()
