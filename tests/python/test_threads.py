"""Sessions beside threads, forks and callbacks."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from onnx import parser

import epona

RNG = np.random.default_rng(1)
X = RNG.standard_normal((64, 512), np.float32)
W = RNG.standard_normal((512, 512), np.float32)
PRODUCT = "g (float[N,512] x, float[512,512] w) => (float[N,512] y) { y = MatMul(x, w) }"


def session(text, **arguments):
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> ' + text)
    return epona.InferenceSession(model.SerializeToString(), **arguments)


def two_threads():
    options = epona.SessionOptions()
    options.intra_op_num_threads = 2
    return session(PRODUCT, sess_options=options)


def long_chain(length=40):
    steps = " ".join(f"v{k + 1} = MatMul(v{k}, x)" for k in range(length))
    return session(f"g (float[768,768] x) => (float[768,768] y) {{ v0 = Relu(x) {steps} y = Relu(v{length}) }}")


def in_child(function):
    """The exit code of a fork that calls it; it may take a minute."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        code = 1
        try:
            code = 0 if function() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_runs_the_sessions_of_its_parent():
    holder = [two_threads()]
    expected = holder[0].run(None, {"x": X, "w": W})[0]

    def run():
        return np.array_equal(holder[0].run(None, {"x": X, "w": W})[0], expected)

    def run_async():
        done, results = threading.Event(), []
        holder[0].run_async(None, {"x": X, "w": W}, lambda values, _, error: (results.extend(values), done.set()), None)
        return done.wait(30) and np.array_equal(results[0], expected)

    def drop():
        holder.clear()
        gc.collect()  # joins no thread that is not there
        return True

    assert run_async()  # so that the fork has the pool of run_async without its threads
    assert in_child(lambda: run() and run() and run_async() and drop()) == 0
    assert in_child(drop) == 0
    assert in_child(lambda: in_child(run) == 0) == 0
    assert run()


def product_of_worker(index):
    return two_threads_of_parent.run(None, {"x": X + index, "w": W})[0]


def test_multiprocessing_with_fork():
    global two_threads_of_parent
    two_threads_of_parent = two_threads()
    expected = [product_of_worker(index) for index in range(4)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(product_of_worker, range(4)).get(60)
    for result, right in zip(results, expected):
        np.testing.assert_array_equal(result, right)


def test_what_a_callback_raises_is_seen(monkeypatch):
    seen, done = [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda report: (seen.append(report), done.set()))

    def callback(results, user_data, error):
        raise LookupError("from the callback")

    model = two_threads()
    model.run_async(None, {"x": X, "w": W}, callback, None)
    assert done.wait(30)
    assert seen[0].exc_type is LookupError and "run_async" in seen[0].err_msg and seen[0].object is callback
    with pytest.raises(TypeError, match="callback must be callable"):
        model.run_async(None, {"x": X, "w": W}, None, None)


def test_a_binding_is_of_one_thread_at_a_time():
    model = long_chain()
    binding = model.io_binding()
    binding.bind_cpu_input("x", np.zeros((768, 768), np.float32))
    binding.bind_output("y")
    outcomes = []

    def run():
        try:
            model.run_with_iobinding(binding)
            outcomes.append("done")
        except RuntimeError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "done" in outcomes and all(text == "done" or "a binding of its own" in text for text in outcomes)
    model.run_with_iobinding(binding)
    binding.clear_binding_outputs()


def test_terminate_from_another_thread():
    model, options = long_chain(400), epona.RunOptions()
    x = np.zeros((768, 768), np.float32)
    threading.Timer(0.1, lambda: setattr(options, "terminate", True)).start()
    with pytest.raises(epona.capi.onnxruntime_pybind11_state.Fail, match="terminate flag"):
        model.run(None, {"x": x}, options)
    done = threading.Event()
    model.run_async(None, {"x": x}, lambda *_: done.set(), None, options)
    del model
    gc.collect()
    assert done.wait(60)


def test_made_in_one_thread_and_freed_in_another():
    made = []
    maker = threading.Thread(target=lambda: made.append(two_threads()))
    maker.start()
    maker.join()
    results = []

    def use():
        model = made.pop()
        results.extend(model.run(None, {"x": X, "w": W}))
        del model
        gc.collect()

    user = threading.Thread(target=use)
    user.start()
    user.join()
    np.testing.assert_allclose(results[0], X @ W, rtol=1e-3, atol=1e-3)


EXIT = """
import time
import numpy as np
from onnx import parser
import epona
steps = " ".join(f"v{k + 1} = MatMul(v{k}, x)" for k in range(40))
text = f"g (float[768,768] x) => (float[768,768] y) {{ v0 = Relu(x) {steps} y = Relu(v40) }}"
model = epona.InferenceSession(
    parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> ' + text).SerializeToString())
x = np.zeros((768, 768), np.float32)
model.run_async(None, {"x": x}, lambda results, data, error: print("called", len(results)), None)
time.sleep(0.05)
"""


def test_the_interpreter_may_end_while_models_run():
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "called 1\n", "")


def test_providers_change_while_others_run():
    model = session("g (float[N,2] a, float[2] b) => (float[N,2] s, float[N,2] d) { s = Add(a, b)  d = Sub(a, b) }")
    a, b, wrong, stop = X[:5, :2].copy(), W[0, :2].copy(), [], threading.Event()

    def run():
        while not stop.is_set():
            total, difference = model.run(None, {"a": a, "b": b})
            if not (np.array_equal(total, a + b) and np.array_equal(difference, a - b)):
                wrong.append((total, difference))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 1
    for turn in range(1000):
        model.set_providers(["TestExecutionProvider", "CPUExecutionProvider"][turn % 2 :])
        if time.monotonic() > end:
            break
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_senseless_number_of_threads_is_not_made(capfd):
    options = epona.SessionOptions()
    options.intra_op_num_threads = 1_000_000
    before = threading.active_count(), len(os.listdir("/proc/self/task"))
    model = session(PRODUCT, sess_options=options)
    most = max(256, 4 * os.cpu_count())
    assert len(os.listdir("/proc/self/task")) - before[1] < most
    assert f"intra_op_num_threads is 1000000; {most} threads are used" in capfd.readouterr().err
    del model
