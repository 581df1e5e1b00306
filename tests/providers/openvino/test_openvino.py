"""What the OpenVINO provider promises: who runs what and why, right results whatever the shapes, threads and sessions."""

import re
import threading
from pathlib import Path

import numpy as np
import ov
import pytest
from onnx import TensorProto, helper
from ov import CPU, NAME, model, value

FLOAT, INT64, BOOL, STRING, DOUBLE = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.STRING,
    TensorProto.DOUBLE,
)
ROOT = Path(__file__).resolve().parents[3]

# The session repeats a run on the CPU when a provider fails: that must not hide a failure here.
pytestmark = pytest.mark.filterwarnings("error:.*failed while running")


def close(got, expected, tolerance=1e-5):
    assert got.shape == expected.shape and got.dtype == expected.dtype
    if expected.size:
        assert np.abs(got - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-30)


def sample(batch, seed=1):
    return np.random.default_rng(seed).standard_normal((batch, 16)).astype(np.float32)


def test_whole_graph_is_taken_and_right():
    made, reference = ov.mlp()
    session = ov.session(made)
    assert session.get_providers() == [NAME, CPU]
    assert set(ov.placed(session).values()) == {NAME}
    close(session.run(None, {"x": sample(5)})[0], reference(sample(5)))


@pytest.mark.parametrize("batch", ["N", 3])
def test_shapes_follow_the_input(batch):
    made, reference = ov.mlp(batch)
    session = ov.session(made)
    for size in [3] if batch == 3 else [1, 7, 3, 1, 0, 64, 3]:
        close(session.run(None, {"x": sample(size)})[0], reference(sample(size)))


def test_results_stay_the_callers():
    """Later runs do not write into what earlier ones returned, whether dims are known before running or not."""
    sizes = [3, 3, 3, 7, 1, 64, 3, 7, 0, 3, 3, 3]
    for batch in ("N", 3):
        made, reference = ov.mlp(batch)
        session = ov.session(made)
        held = []
        for seed, size in enumerate(sizes if batch == "N" else [3] * 12):
            feed = sample(size, seed)
            held.append((session.run(None, {"x": feed})[0], reference(feed)))
            if seed == 8:  # some are given back in between, not in the order in which they came
                del held[4], held[1]
        del session
        for result, expected in held:
            close(result, expected)


def test_what_callers_give_back_is_used_again():
    """From the third run on, a loop that drops its results touches no new memory."""
    made, _ = ov.mlp("N")
    session = ov.session(made)
    feed = {"x": sample(100_000)}
    addresses = [session.run(None, feed)[0].ctypes.data for _ in range(8)]
    assert len(set(addresses)) <= 2


def test_many_threads_one_session():
    made, reference = ov.mlp(width=512)
    session, wrong = ov.session(made, {"num_streams": 2}), []

    def work(seed):
        for i in range(30):
            x = sample(1 + (seed + i) % 5, seed)
            if not np.allclose(session.run(None, {"x": x})[0], reference(x), rtol=1e-4, atol=1e-3):
                wrong.append((seed, i))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_several_sessions_live_side_by_side():
    sessions = [(ov.session(made), reference) for made, reference in (ov.mlp(seed=seed) for seed in range(4))]
    for session, reference in sessions:
        close(session.run(None, {"x": sample(2)})[0], reference(sample(2)))
    del sessions[0]
    close(sessions[-1][0].run(None, {"x": sample(2)})[0], sessions[-1][1](sample(2)))


def test_values_without_elements_and_scalars():
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="exp"),
        helper.make_node("ReduceSum", ["e"], ["s"], name="sum", keepdims=0),
    ]
    made = model(nodes, [value("x", FLOAT, ["A", "B"])], [value("e", FLOAT, ["A", "B"]), value("s", FLOAT, [])])
    session = ov.session(made)
    for shape in [(2, 3), (0, 3), (2, 0), (1, 1)]:
        x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        e, s = session.run(None, {"x": x})
        close(e, np.exp(x))
        assert s.shape == () and abs(s - np.exp(x).sum()) < 1e-4


def test_output_that_is_an_input_passed_on():
    """OpenVINO drops the Dropout and then leaves memory given for its output alone."""
    made = model(
        [helper.make_node("Max", ["x"], ["y"], name="only"), helper.make_node("Relu", ["x"], ["z"], name="relu")],
        [value("x", FLOAT, ["N", 2])],
        [value("y", FLOAT, ["N", 2]), value("z", FLOAT, ["N", 2])],
    )
    x = np.array([[-1, 2], [3, -4]], np.float32)
    y, z = ov.session(made, config={"session.disable_specified_optimizers": "eliminate_identity"}).run(None, {"x": x})
    assert np.array_equal(y, x) and np.array_equal(z, np.maximum(x, 0))


def unsupported_in_the_middle():
    """x -> MatMul -> (an operator that OpenVINO lacks) -> MatMul, with a branch around it."""
    w = np.random.default_rng(5).standard_normal((8, 8)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="before"),
        helper.make_node("Binarizer", ["a"], ["b"], name="middle", domain="ai.onnx.ml", threshold=0.0),
        helper.make_node("MatMul", ["b", "w"], ["c"], name="after"),
        helper.make_node("Add", ["c", "a"], ["y"], name="join"),
    ]
    made = model(nodes, [value("x", FLOAT, ["N", 8])], [value("y", FLOAT, ["N", 8])], {"w": w}, domains=["ai.onnx.ml"])
    return made, lambda x: ((x @ w) > 0).astype(np.float32) @ w + x @ w


def test_graph_is_cut_around_what_openvino_lacks():
    made, reference = unsupported_in_the_middle()
    session = ov.session(made)
    places = ov.placed(session)
    assert places["middle"] == CPU and places["before"] == places["after"] == places["join"] == NAME
    reason, text = ov.refusals(session)["middle"]
    assert reason == "no kernel" and "Binarizer" in text
    x = np.random.default_rng(6).standard_normal((4, 8)).astype(np.float32)
    close(session.run(None, {"x": x})[0], reference(x))


def test_small_islands_stay_on_the_cpu():
    nodes = [
        helper.make_node("Binarizer", ["x"], ["a"], name="first", domain="ai.onnx.ml", threshold=0.0),
        helper.make_node("Neg", ["a"], ["b"], name="island"),
        helper.make_node("Binarizer", ["b"], ["y"], name="last", domain="ai.onnx.ml", threshold=-0.5),
    ]
    made = model(nodes, [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])], domains=["ai.onnx.ml"])
    session = ov.session(made)
    assert ov.placed(session)["island"] == CPU
    assert ov.refusals(session)["island"][0] == "island"


@pytest.mark.parametrize(
    ("op", "dtype", "attributes", "reason"),
    [
        ("Add", DOUBLE, {}, "type"),
        ("Concat", STRING, {"axis": 0}, "type"),
        ("Add", TensorProto.UINT64, {}, "type"),
        ("Add", TensorProto.INT8, {}, "better on CPU"),
        ("BitShift", TensorProto.UINT8, {"direction": "LEFT"}, "better on CPU"),
    ],
)
def test_refused_with_a_reason(op, dtype, attributes, reason):
    made = model(
        [helper.make_node(op, ["a", "b"], ["y"], name="node", **attributes)],
        [value("a", dtype, ["N"]), value("b", dtype, ["N"])],
        [value("y", dtype, None)],
    )
    session = ov.session(made)
    assert ov.placed(session) == {"node": CPU}
    got, text = ov.refusals(session)["node"]
    assert got == reason and len(text) > 20


def test_integers_that_do_not_fit_are_not_computed_wrongly():
    """OpenVINO computes int64 in int32: such inputs fail there (and fall back), and are never cut short."""
    made = model(
        [helper.make_node("Add", ["a", "b"], ["y"], name="sum")],
        [value("a", INT64, ["N"]), value("b", INT64, ["N"])],
        [value("y", INT64, ["N"])],
    )
    session = ov.session(made)
    small, large = np.array([1, -2, 2**30]), np.array([2**40, 5, -7])
    assert np.array_equal(session.run(None, {"a": small, "b": small[::-1].copy() // 2})[0], small + small[::-1] // 2)
    with pytest.warns(UserWarning, match=str(2**40)):
        assert np.array_equal(session.run(None, {"a": small, "b": large})[0], small + large)


def test_float32_stays_float32():
    """The default on machines with bfloat16 would be off by 1e-3."""
    random = np.random.default_rng(9)
    w = random.standard_normal((256, 256)).astype(np.float32)
    made = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", FLOAT, [4, 256])], [value("y", FLOAT, [4, 256])], {"w": w}
    )
    x = random.standard_normal((4, 256)).astype(np.float32)
    close(ov.session(made).run(None, {"x": x})[0], x @ w, 1e-5)


def test_control_flow_bodies():
    """Branches that OpenVINO takes whole with the If, and a condition from outside."""
    then = helper.make_graph([helper.make_node("Exp", ["x"], ["t"])], "then", [], [value("t", FLOAT, ["N"])])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [value("e", FLOAT, ["N"])])
    nodes = [
        helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other),
        helper.make_node("Abs", ["y"], ["z"], name="abs"),
    ]
    made = model(nodes, [value("x", FLOAT, ["N"]), value("c", BOOL, [])], [value("z", FLOAT, ["N"])])
    session = ov.session(made)
    x = np.array([1, -2, 3], np.float32)
    close(session.run(None, {"x": x, "c": np.array(True)})[0], np.exp(x))
    close(session.run(None, {"x": x, "c": np.array(False)})[0], np.abs(x))


def test_output_that_nobody_wants():
    """An operator without its first output, whose group is looked at again when it is compiled."""
    random = np.random.default_rng(4)
    weights = {"w": random.standard_normal((2, 5, 4)).astype(np.float32), "r": random.standard_normal((2, 5, 5)).astype(np.float32)}
    node = helper.make_node("RNN", ["x", "w", "r"], ["", "h"], hidden_size=5, direction="bidirectional")
    made = model([node], [value("x", FLOAT, [3, 2, 4])], [value("h", FLOAT, [2, 2, 5])], weights)
    x = random.standard_normal((3, 2, 4)).astype(np.float32)
    want = ov.session(made, providers=[CPU]).run(None, {"x": x})[0]
    for _ in range(20):
        close(ov.session(made).run(None, {"x": x})[0], want)


def test_computed_scale_rounds_as_the_standard_says():
    """OpenVINO would multiply by the reciprocal of the scale and round 25.499999 instead of 25.5."""
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], name="node")
    kinds = [value("x", FLOAT, ["N"]), value("s", FLOAT, []), value("z", TensorProto.UINT8, [])]
    session = ov.session(model([node], kinds, [value("y", TensorProto.UINT8, ["N"])]))
    feed = {"x": np.array([0.5, 1.34], np.float32), "s": np.float32(5 / 255), "z": np.uint8(153)}
    assert session.run(None, feed)[0].tolist() == [179, 221]


def test_step_of_zero_is_an_error():
    """It would end the process inside OpenVINO."""
    node = helper.make_node("Range", ["a", "b", "d"], ["y"], name="node")
    kinds = [value(name, INT64, []) for name in "abd"]
    session = ov.session(model([node], kinds, [value("y", INT64, ["N"])]))
    one, four, zero = np.int64(1), np.int64(4), np.int64(0)
    assert session.run(None, {"a": one, "b": four, "d": one})[0].tolist() == [1, 2, 3]
    with pytest.raises(Exception, match="delta is 0"):
        session.run(None, {"a": one, "b": four, "d": zero})


def test_initializer_that_may_be_overridden():
    w = np.eye(4, dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    made = model(nodes, [value("x", FLOAT, [2, 4]), value("w", FLOAT, [4, 4])], [value("y", FLOAT, [2, 4])], {"w": w})
    session = ov.session(made)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    close(session.run(None, {"x": x})[0], x)
    close(session.run(None, {"x": x, "w": 2 * w})[0], 2 * x)


def test_every_level_agrees():
    made, reference = unsupported_in_the_middle()
    x = np.random.default_rng(8).standard_normal((3, 8)).astype(np.float32)
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"):
        settings = ov.ort.SessionOptions()
        settings.graph_optimization_level = getattr(ov.ort.GraphOptimizationLevel, level)
        session = ov.ort.InferenceSession(made, settings, providers=[NAME, CPU])
        close(session.run(None, {"x": x})[0], reference(x))


@pytest.mark.without_openvino
def test_pinned_version_is_the_one_in_requirements():
    source = (ROOT / "src/providers/openvino/find.h").read_text()
    pinned = re.search(r"^openvino==(\S+)$", (ROOT / "requirements-dev.txt").read_text(), re.M).group(1)
    assert f'kTestedVersion = "{pinned}"' in source


def test_outputs_of_one_run_do_not_share_memory():
    """Reshape of an output that OpenVINO hands over."""
    weight = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Reshape", ["h", "s"], ["y"])]
    made = model(
        nodes,
        [value("x", FLOAT, ["n", 64]), value("s", INT64, ["k"])],
        [value("h", FLOAT, ["n", 64]), value("y", FLOAT, None)],
        {"w": weight},
    )
    h, y = ov.session(made).run(None, {"x": np.ones((5, 64), np.float32), "s": np.array([320])})
    kept = y.copy()
    h[:] = 0
    assert np.array_equal(y, kept) and not np.shares_memory(h, y)


def test_one_small_output_does_not_keep_the_large_ones():
    """A loop that collects one value a run holds what it collects."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["large"]), helper.make_node("ReduceSum", ["large", "a"], ["small"])]
    made = model(
        nodes,
        [value("x", FLOAT, ["n", 8])],
        [value("large", FLOAT, ["n", 1024]), value("small", FLOAT, ["n", 1])],
        {"w": np.ones((8, 1024), np.float32), "a": np.array([1])},
    )
    session = ov.session(made, config={"session.require_placement": f"{NAME}:0.5"})
    feed = {"x": np.ones((4096, 8), np.float32)}  # 16 MB of large

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    small = [session.run(None, feed)[1] for _ in range(6)]
    before = resident()
    small += [session.run(None, feed)[1] for _ in range(40)]
    assert resident() - before < 4 * 16e6
    assert all(np.array_equal(one, np.full((4096, 1), 8192, np.float32)) for one in small)
