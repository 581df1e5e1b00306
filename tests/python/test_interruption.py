"""Stopping what takes long: a load by its flag, a run by Ctrl-C."""

import os
import signal
import threading
import time

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import epona

SMALL = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] a) => (float[2] s) { s = Add(a, a) }')
# Runs for a minute or so, in steps of some microseconds.
ENDLESS = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
g (int64 n, float[K] x) => (float[K] y) <bool go = {1}> {
  y = Loop(n, go, x) <body = b (int64 i, bool c, float[K] s) => (bool d, float[K] t) {
    d = Identity(c)  u = Sqrt(s)  v = Mul(u, u)  t = Add(v, x) }> }""").SerializeToString()
FEED = {"n": np.array(10_000_000), "x": np.ones(4096, np.float32)}


@pytest.fixture(autouse=True)
def control_c_raises():
    """Python leaves SIGINT alone where it was ignored when it started, as in jobs that a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def large_model():
    """Some seconds of work for the loader: products whose weights are packed."""
    rng = np.random.default_rng(0)
    names, nodes, weights = "x", [], []
    for i in range(12):
        weights.append(numpy_helper.from_array(rng.standard_normal((1024, 1024), np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [names, f"w{i}"], [f"y{i}"]))
        names = f"y{i}"
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1024]) for name in ("x", names)]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("module", [epona, onnxruntime])
def test_a_cancelled_load(module, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(SMALL.SerializeToString())
    options = module.SessionOptions()
    options.set_load_cancellation_flag(True)
    for model in (str(path), path.read_bytes()):
        with pytest.raises(Exception) as info:
            module.InferenceSession(model, options)
        assert type(info.value).__name__ == "ModelLoadCanceled"
        assert str(info.value).startswith("[ONNXRuntimeError] : 12 : MODEL_LOAD_CANCELED : ")
        assert "Graph loading canceled due to user request." in str(info.value)
    options.set_load_cancellation_flag(False)
    session = module.InferenceSession(str(path), options)
    options.set_load_cancellation_flag(True)
    a = np.ones(2, np.float32)
    np.testing.assert_array_equal(session.run(None, {"a": a})[0], a + a)
    if module is epona:
        session.set_providers(["CPUExecutionProvider"])  # not a load


@pytest.mark.parametrize("providers", [["CPUExecutionProvider"], ["TestExecutionProvider", "CPUExecutionProvider"]])
def test_a_load_is_cancelled_while_it_goes_on(providers):
    model, outcomes = large_model(), set()
    start = time.monotonic()
    epona.InferenceSession(model, providers=providers)
    whole = time.monotonic() - start
    # Wherever the loader is when the flag is set, it stops, and is not taken for a failure of the provider.
    for share in (0.05, 0.2, 0.4, 0.6, 0.8):
        options = epona.SessionOptions()
        timer = threading.Timer(whole * share, options.set_load_cancellation_flag, [True])
        timer.start()
        try:
            session = epona.InferenceSession(model, options, providers=providers)
            assert session.get_providers() == providers
            outcomes.add("loaded")
        except Exception as error:  # noqa: BLE001
            assert type(error).__name__ == "ModelLoadCanceled", error
            outcomes.add("cancelled")
        timer.join()
    assert "cancelled" in outcomes


def interrupt_after(seconds):
    timer = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    return timer


def endless_binding(session):
    binding = session.io_binding()
    for name, value in FEED.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("y")
    return binding


@pytest.mark.parametrize("how", ["run", "binding", "values"])
def test_control_c_ends_a_run(how):
    session = epona.InferenceSession(ENDLESS)
    start = time.monotonic()
    timer = interrupt_after(0.1)
    with pytest.raises(KeyboardInterrupt):
        if how == "run":
            session.run(None, FEED)
        elif how == "binding":
            session.run_with_iobinding(endless_binding(session))
        else:
            session.run_with_ort_values(None, {k: epona.OrtValue.ortvalue_from_numpy(v) for k, v in FEED.items()})
    assert time.monotonic() - start < 20
    timer.join()
    # The session is as good as before.
    (y,) = session.run(None, FEED | {"n": np.array(3)})
    np.testing.assert_allclose(y, 4, rtol=1e-6)


def test_handlers_of_signals_run_during_a_run():
    session = epona.InferenceSession(ENDLESS)
    options = epona.RunOptions()
    before = signal.signal(signal.SIGINT, lambda *_: setattr(options, "terminate", True))
    try:
        timer = interrupt_after(0.1)
        with pytest.raises(Exception, match="terminate flag being set to true") as info:
            session.run(None, FEED, options)
        assert type(info.value).__name__ == "Fail"
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_runs_on_other_threads_are_not_interrupted():
    session, options, ended = epona.InferenceSession(ENDLESS), epona.RunOptions(), []

    def work():
        try:
            session.run(None, FEED, options)
        except Exception as error:  # noqa: BLE001
            ended.append(type(error).__name__)

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        interrupt_after(0.1)
        time.sleep(5)
    assert not ended
    options.terminate = True
    thread.join()
    assert ended == ["Fail"]
