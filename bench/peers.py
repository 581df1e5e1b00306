#!/usr/bin/env python3
"""Epona against onnxruntime and OpenVINO (single precision): latency, creation time, peak memory.

    bench/peers.py                              the models marked bench, 1 and 2 threads
    bench/peers.py --models mobilenet_v2 gpt2 --threads 1
    bench/peers.py --json results.json --limit 1.5

Every engine has its own process. They take turns in rounds, so that a change of the machine's speed meets all of
them; a ratio is the median over the rounds of the ratio of that round's medians. Below 1 Epona is faster.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from model_builders import catalog, inputs  # noqa: E402
from model_builders.build import model_path  # noqa: E402

ISA_FLAGS = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16")
ISA_FLAGS += ("avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve")


class Engine:
    """A worker process, asked for a few runs at a time."""

    def __init__(self, name, path, feeds, threads):
        command = [sys.executable, str(HERE / "engine_worker.py"), name, str(path), str(feeds), str(threads)]
        self.name = name
        self.rounds = []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.ready = self._answer()
        self.error = self.ready.get("error")

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"the process ended with code {self.process.wait()}"}
        return json.loads(line)

    def turn(self, seconds, runs):
        if self.error:
            return
        self.process.stdin.write(json.dumps({"seconds": seconds, "runs": runs}) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.error = answer.get("error")
        self.rounds.append(answer.get("times", []))

    def finish(self):
        self.process.stdin.close()
        result = {"error": self.error}
        if not self.error:
            last = self._answer()
            result = {
                "version": self.ready["version"],
                "median_ms": 1e3 * statistics.median(t for times in self.rounds for t in times),
                "fastest_ms": 1e3 * min(t for times in self.rounds for t in times),
                "round_medians_ms": [1e3 * statistics.median(times) for times in self.rounds],
                "runs": sum(len(times) for times in self.rounds),
                "first_create_ms": 1e3 * last["create"][0],
                "create_ms": 1e3 * min(last["create"]),
                "peak_mb": last["peak_mb"],
                "peak_above_interpreter_mb": last["peak_mb"] - last["baseline_mb"],
            }
        self.process.wait()
        return result


def compare(model, threads, engines, seconds, rounds):
    path = model_path(model.name)
    if not path.exists():
        raise SystemExit(f"{path} is missing; run scripts/models.py --only {model.name}")
    path.read_bytes()  # into the page cache, for all alike
    with tempfile.TemporaryDirectory() as folder:
        feeds = Path(folder) / "feeds.npz"
        np.savez(feeds, **inputs.default_feed(model.name))
        running = [Engine(name, path, feeds, threads) for name in engines]
        slowest = max((e.ready.get("first_run", 0.0) for e in running), default=0.0)
        # Slow models get fewer rounds, never fewer than three.
        rounds = max(3, min(rounds, int(seconds * rounds / max(slowest, 1e-9))))
        for number in range(rounds):
            shift = number % len(running)
            for engine in running[shift:] + running[:shift]:
                engine.turn(seconds / rounds, 3 if slowest < seconds else 1)
        return {engine.name: engine.finish() for engine in running}


def ratio(results, ours, theirs):
    if results[ours].get("error") or results[theirs].get("error"):
        return None
    pairs = zip(results[ours]["round_medians_ms"], results[theirs]["round_medians_ms"], strict=True)
    return statistics.median(a / b for a, b in pairs)


def machine():
    flags, name = set(), "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            flags |= set(value.split())
        elif key.strip() == "model name":
            name = value.strip()
    return {
        "processor": name,
        "cpus": len(os.sched_getaffinity(0)),
        "instruction_sets": [flag for flag in ISA_FLAGS if flag in flags],
        "load": os.getloadavg()[0],
    }


def cell(value, form):
    return "-" if value is None else format(value, form)


def print_row(name, threads, engines, results, ratios):
    """One line: latencies, ratios, creation times, peaks; what an engine refused goes below it."""
    columns = [f"{name:32} {threads}"]
    columns += [f"{cell(results[e].get('median_ms'), '9.3f')}" for e in engines]
    columns += [f"{cell(ratios.get(e), '6.2f'):>6}" for e in engines[1:]]
    columns += [f"{cell(results[e].get('create_ms'), '7.0f'):>7}" for e in engines]
    columns += [f"{cell(results[e].get('peak_mb'), '6.0f'):>6}" for e in engines]
    columns += [f"{cell(results[e].get('peak_above_interpreter_mb'), '6.0f'):>6}" for e in engines]
    print(" ".join(f"{c:>9}" if i else c for i, c in enumerate(columns)), flush=True)
    for engine in engines:
        if results[engine].get("error"):
            print(f"    {engine}: {results[engine]['error']}", flush=True)


def print_head(engines):
    short = [e[:9] for e in engines]
    heads = [f"{'model':32} T"] + [f"{s} ms" for s in short] + [f"/{s}" for s in short[1:]]
    heads += [f"make {s[:4]}" for s in short] + [f"peak {s[:4]}" for s in short] + [f"own {s[:4]}" for s in short]
    print(" ".join(f"{h:>9}" if i else h for i, h in enumerate(heads)))


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def summary(rows, engines):
    """Geometric means of latency, creation and memory ratios, and the worst of each."""
    ours = engines[0]
    for theirs in engines[1:]:
        for threads in sorted({row["threads"] for row in rows}):
            both = [
                row
                for row in rows
                if row["threads"] == threads and not any(row["results"][e].get("error") for e in (ours, theirs))
            ]
            if not both:
                continue
            kinds = {
                "latency": [row["ratios"][theirs] for row in both],
                "creation": [row["results"][ours]["create_ms"] / row["results"][theirs]["create_ms"] for row in both],
                "peak": [row["results"][ours]["peak_mb"] / row["results"][theirs]["peak_mb"] for row in both],
            }
            parts = []
            for kind, values in kinds.items():
                worst = both[values.index(max(values))]["model"]
                parts.append(f"{kind} {geometric_mean(values):.2f} (worst {max(values):.2f} {worst})")
            print(f"{ours} / {theirs}, {threads} threads, {len(both)} models: " + ", ".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", metavar="NAME", help="default: all marked bench")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--runtime", default=os.environ.get("EPONA_TEST_MODULE", "epona"), help="module to compare")
    parser.add_argument("--peers", nargs="*", default=["onnxruntime", "openvino"])
    parser.add_argument("--seconds", type=float, default=1.5, help="running time for each engine and model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write all results")
    parser.add_argument("--limit", type=float, help="exit with 1 if slower than this times onnxruntime anywhere")
    arguments = parser.parse_args()
    engines = [arguments.runtime] + [peer for peer in arguments.peers if peer != arguments.runtime]
    about, start, rows = machine(), time.monotonic(), []
    print(f"{about['processor']}, {about['cpus']} CPUs, {' '.join(about['instruction_sets'])}")
    if about["load"] > 0.5:
        print(f"the machine is busy (load {about['load']:.1f}): trust the ratios, not the times")
    print("ms: median latency; /peer: ratio, below 1 is faster; make: creation in ms; peak: MB of the whole process;")
    print("own: MB above the interpreter with numpy and the inputs")
    print_head(engines)
    for model in catalog.select(arguments.models, "bench"):
        for threads in arguments.threads:
            results = compare(model, threads, engines, arguments.seconds, arguments.rounds)
            ratios = {peer: ratio(results, engines[0], peer) for peer in engines[1:]}
            rows.append({"model": model.name, "threads": threads, "results": results, "ratios": ratios})
            print_row(model.name, threads, engines, results, ratios)
    summary(rows, engines)
    print(f"{time.monotonic() - start:.0f} s")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")
    if arguments.limit:
        slow = [r for r in rows if r["results"][engines[0]].get("error")]
        slow += [r for r in rows if (r["ratios"].get("onnxruntime") or 0) > arguments.limit]
        if slow:
            raise SystemExit(f"over {arguments.limit} or failed: " + " ".join(f"{r['model']}@{r['threads']}" for r in slow))


if __name__ == "__main__":
    main()
