"""Nets quantised to 8 bits: OpenVINO's byte products saturate on processors without VNNI, and nothing wrong comes of it."""

from pathlib import Path

import numpy as np
import onnxruntime
import ov
import pytest
from onnx import TensorProto, helper
from ov import CPU, NAME

CHANNELS = 64
FLAGS = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
SATURATES = "avx2" in FLAGS and "avx512_vnni" not in FLAGS and "avx_vnni" not in FLAGS
STEP = 2.0  # of the output's quantisation
SHAPE = [1, CHANNELS, 16, 16]


def net(kind, float_layers=0):
    """One convolution on bytes, large enough in its sums to saturate 16 bits, and float ones after it."""
    random = np.random.default_rng(3)
    signed = kind == np.int8
    weights = {
        "w": random.integers(-127, 128, (CHANNELS, CHANNELS, 3, 3)).astype(np.int8),
        "ws": (random.random(CHANNELS) * 0.01 + 0.005).astype(np.float32),
        "wz": np.zeros(CHANNELS, np.int8),
        "xs": np.float32(0.02),
        "xz": kind(0 if signed else 128),
        "ys": np.float32(STEP),
        "yz": kind(3 if signed else 120),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"], name="quantize"),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"], name="dequantize"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], name="weights", axis=0),
        helper.make_node("Conv", ["xd", "wd"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["q"], name="requantize"),
        helper.make_node("DequantizeLinear", ["q", "ys", "yz"], ["y0"], name="last"),
    ]
    for i in range(float_layers):
        weights[f"f{i}"] = (np.eye(CHANNELS)[:, :, None, None] * 1.25).astype(np.float32)
        nodes.append(helper.make_node("Conv", [f"y{i}", f"f{i}"], [f"y{i + 1}"], name=f"float{i}"))
    outputs = [ov.value(f"y{float_layers}", TensorProto.FLOAT, SHAPE)]
    return ov.model(nodes, [ov.value("x", TensorProto.FLOAT, SHAPE)], outputs, weights)


def expected(model, x):
    """The peer with every node computed as it is written."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=[CPU]).run(None, {"x": x})[0]


def steps_off(got, want, scale=1.0):
    return np.abs(got - want).max() / (STEP * scale)


def sample():
    return (np.abs(np.random.default_rng(5).standard_normal(SHAPE)) * 2).astype(np.float32)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_sums_do_not_saturate(kind):
    made = net(kind)
    session = ov.session(made)
    # Sums in another order may round the other way, by one step; saturated ones are up to 51 off.
    assert steps_off(session.run(None, {"x": sample()})[0], expected(made, sample())) < 1.01
    if SATURATES:
        reason, text = ov.refusals(session)["conv"]
        assert reason == "better on CPU" and "VNNI" in text and "enable_qdq_optimizer" in text
    else:
        assert ov.placed(session)["conv"] == NAME


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_few_byte_layers_go_along_with_a_float_net(kind):
    made = net(kind, float_layers=6)
    session = ov.session(made)
    assert set(ov.placed(session).values()) == {NAME}
    assert steps_off(session.run(None, {"x": sample()})[0], expected(made, sample()), 1.25**6) < 1.01


def test_the_loss_can_be_chosen():
    session = ov.session(net(np.uint8), {"enable_qdq_optimizer": True})
    assert set(ov.placed(session).values()) == {NAME}
    assert session.get_provider_options()[NAME]["enable_qdq_optimizer"] in ("1", "True", "true", True)
    assert session.run(None, {"x": sample()})[0].shape == tuple(SHAPE)


def test_an_option_without_effect_is_warned_about(capfd):
    if SATURATES:
        pytest.skip("it has an effect here")
    ov.session(net(np.uint8), {"enable_qdq_optimizer": True}, severity=2)
    assert "enable_qdq_optimizer has no effect" in capfd.readouterr().err
