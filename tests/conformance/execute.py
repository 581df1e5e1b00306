"""Runs cases in worker processes: a case that crashes or hangs takes its worker with it, and only that case fails."""

import importlib
import multiprocessing
import multiprocessing.connection
import os
import time

import ml_dtypes
import numpy as np
import onnx

TIMEOUT_S = 120
PROVIDERS = os.environ.get("EPONA_PROVIDERS_UNDER_TEST", "CPUExecutionProvider").split(",")

# ONNX element types that numpy itself does not know.
SPECIAL = {
    np.dtype(ml_dtypes.bfloat16): (onnx.TensorProto.BFLOAT16, np.uint16),
    np.dtype(ml_dtypes.float8_e4m3fn): (onnx.TensorProto.FLOAT8E4M3FN, np.uint8),
    np.dtype(ml_dtypes.float8_e4m3fnuz): (onnx.TensorProto.FLOAT8E4M3FNUZ, np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): (onnx.TensorProto.FLOAT8E5M2, np.uint8),
    np.dtype(ml_dtypes.float8_e5m2fnuz): (onnx.TensorProto.FLOAT8E5M2FNUZ, np.uint8),
    np.dtype(ml_dtypes.float8_e8m0fnu): (onnx.TensorProto.FLOAT8E8M0, np.uint8),
    np.dtype(ml_dtypes.int4): (onnx.TensorProto.INT4, None),
    np.dtype(ml_dtypes.uint4): (onnx.TensorProto.UINT4, None),
    np.dtype(ml_dtypes.float4_e2m1fn): (onnx.TensorProto.FLOAT4E2M1, None),
    np.dtype(ml_dtypes.int2): (onnx.TensorProto.INT2, None),
    np.dtype(ml_dtypes.uint2): (onnx.TensorProto.UINT2, None),
}


def is_special(value):
    return isinstance(value, np.ndarray) and value.dtype in SPECIAL


def run_plain(session, feeds):
    return session.run(None, feeds)


def run_with_bits(module, session, feeds, expected):
    """For modules whose run() does not take or give types unknown to numpy: their raw bits through OrtValue and binding."""
    binding = session.io_binding()
    for name, value in feeds.items():
        if is_special(value):
            kind, bits = SPECIAL[value.dtype]
            if bits is None:
                raise TypeError(f"no way to feed {value.dtype}")
            value = module.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(bits), kind)
        else:
            value = module.OrtValue.ortvalue_from_numpy(value)
        binding.bind_ortvalue_input(name, value)
    buffers = {}
    for output, want in zip(session.get_outputs(), expected):
        if is_special(want) and SPECIAL[want.dtype][1] is not None:
            kind, bits = SPECIAL[want.dtype]
            buffer = buffers[output.name] = np.zeros(want.shape, bits)
            binding.bind_output(output.name, "cpu", 0, kind, want.shape, buffer.ctypes.data)
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    values = binding.get_outputs()
    return [buffers[o.name] if o.name in buffers else v.numpy() for o, v in zip(session.get_outputs(), values)]


def compare(got, want, rtol, atol, where):
    if isinstance(want, dict):
        assert got == want, f"{where}: {got} != {want}"
        return
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)), f"{where}: expected a sequence, found {type(got).__name__}"
        assert len(got) == len(want), f"{where}: expected {len(want)} items, found {len(got)}"
        for i, (g, w) in enumerate(zip(got, want)):
            compare(g, w, rtol, atol, f"{where}[{i}]")
        return
    if want is None or got is None:
        assert got is want, f"{where}: expected {want}, found {got}"
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{where}: expected shape {want.shape}, found {got.shape}"
    if want.dtype in SPECIAL and got.dtype == SPECIAL[want.dtype][1]:
        got = got.view(want.dtype)
    if want.dtype.kind in "OUS":
        assert got.astype(object).tolist() == want.astype(object).tolist(), f"{where}: strings differ"
        return
    assert got.dtype == want.dtype, f"{where}: expected type {want.dtype}, found {got.dtype}"
    if want.dtype in SPECIAL:
        if want.dtype == ml_dtypes.bfloat16:
            rtol = max(rtol, 2**-6)  # two steps of bfloat16, as in onnx' own runner
        got, want = got.astype(np.float32), want.astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=where)


def run_case(module, case, threads=1, level=None):
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if level is not None:
        options.graph_optimization_level = getattr(module.GraphOptimizationLevel, level)
    session = module.InferenceSession(case.model, options, providers=PROVIDERS)
    names = [info.name for info in session.get_inputs()]
    for inputs, expected in case.data_sets:
        feeds = dict(zip(names, inputs))
        special = [v for v in [*inputs, *expected] if is_special(v)]
        try:
            got = run_plain(session, feeds)
        except Exception as error:
            if not special or not hasattr(session, "io_binding"):
                raise
            try:
                got = run_with_bits(module, session, feeds, expected)
            except Exception:
                raise error from None
        assert len(got) == len(expected), f"expected {len(expected)} outputs, found {len(got)}"
        for i, (g, w) in enumerate(zip(got, expected)):
            compare(g, w, case.rtol, case.atol, f"output {i}")


def brief(error):
    """The first lines of an error that say something, on one line."""
    text = str(error).replace("Not equal to tolerance", "not equal to tolerance")
    words = " ".join(text.split())
    return f"{type(error).__name__}: {words}"[:200]


def worker(pipe, module_name, cases, level):
    module = importlib.import_module(module_name)
    if hasattr(module, "set_default_logger_severity"):
        module.set_default_logger_severity(4)
    pipe.send("ready")
    while (index := pipe.recv()) is not None:
        try:
            run_case(module, cases[index], level=level)
            pipe.send(None)
        except Exception as error:
            pipe.send(brief(error))


class Worker:
    """A process and the case it is at."""

    def __init__(self, module_name, cases, level):
        # Forked, so that the cases are there without a copy. The parent never imports the module under test.
        context = multiprocessing.get_context("fork")
        self.pipe, child = context.Pipe()
        self.process = context.Process(target=worker, args=(child, module_name, cases, level), daemon=True)
        self.process.start()
        child.close()
        self.index = None
        try:
            self.pipe.recv()
        except EOFError:
            raise SystemExit(f"cannot import {module_name}") from None

    def give(self, index):
        self.index, self.started = index, time.monotonic()
        self.pipe.send(index)

    def close(self, kill=False):
        if kill:
            self.process.kill()
        else:
            try:
                self.pipe.send(None)
            except OSError:
                pass
        self.process.join()


def run_cases(cases, module_name, jobs=None, level=None, progress=None):
    """Runs all cases; returns {name: None when it passed, else what went wrong}."""
    jobs = min(jobs or len(os.sched_getaffinity(0)), max(len(cases), 1))
    # Big models first, so that the end is not one worker with a big model.
    order = sorted(range(len(cases)), key=lambda i: cases[i].kind != "light")
    results, workers = {}, [Worker(module_name, cases, level) for _ in range(jobs)]
    todo = iter(order)

    def next_case(w):
        index = next(todo, None)
        if index is None:
            w.index = None
        else:
            w.give(index)

    def finish(w, result):
        results[cases[w.index].name] = result
        if progress:
            progress(len(results), len(cases))

    for w in workers:
        next_case(w)
    while any(w.index is not None for w in workers):
        busy = [w for w in workers if w.index is not None]
        ready = multiprocessing.connection.wait([w.pipe for w in busy], timeout=1)
        for i, w in enumerate(workers):
            if w.index is None:
                continue
            late = time.monotonic() - w.started > TIMEOUT_S
            if w.pipe in ready:
                try:
                    result = w.pipe.recv()
                except (EOFError, OSError):
                    w.process.join()
                    result = f"crash: the process ended with code {w.process.exitcode}"
                else:
                    finish(w, result)
                    next_case(w)
                    continue
            elif late:
                result = f"timeout: more than {TIMEOUT_S} s"
            else:
                continue
            finish(w, result)
            w.close(kill=True)
            workers[i] = Worker(module_name, cases, level)
            next_case(workers[i])
    for w in workers:
        w.close()
    return results
