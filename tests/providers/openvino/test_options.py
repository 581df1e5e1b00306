"""Options of the OpenVINO provider, the model cache, and what happens where OpenVINO is missing or broken."""

import json
import os
import subprocess
import sys

import numpy as np
import ov
import pytest
from onnx import TensorProto, helper
from ov import CPU, NAME

# The session repeats a run on the CPU when a provider fails: that must not hide a failure here.
pytestmark = pytest.mark.filterwarnings("error:.*failed while running")


def sample(batch=2):
    return np.random.default_rng(1).standard_normal((batch, 16)).astype(np.float32)


def check(session, reference, batch=2):
    got, expected = session.run(None, {"x": sample(batch)})[0], reference(sample(batch))
    assert np.abs(got - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    "options",
    [
        {"device_type": "CPU"},
        {"device_type": "AUTO:CPU"},
        {"device_type": "HETERO:CPU"},
        {"device_type": "MULTI:CPU"},
        {"device_type": "CPU_FP32"},
        {"precision": "FP32"},
        {"precision": "ACCURACY"},
        {"num_of_threads": 1},
        {"num_streams": 2},
        {"disable_dynamic_shapes": True},
        {"reshape_input": "x[1..8,16]"},
        {"reshape_input": "x[?,16]"},
        {"layout": "x[NC],y[NC]"},
        {"model_priority": "HIGH"},
        {"enable_opencl_throttling": True},
        {"enable_qdq_optimizer": True},
    ],
)
def test_options_are_taken(options):
    made, reference = ov.mlp()
    session = ov.session(made, options)
    assert session.get_providers()[0] == NAME
    assert set(ov.placed(session).values()) == {NAME}
    check(session, reference)
    check(session, reference, 5)


@pytest.mark.parametrize(
    "options", [{"workload_type": "Efficient"}, {"enable_opencl_throttling": True}, {"model_priority": "HIGH"}]
)
def test_options_without_effect_are_warned_about(options, capfd):
    made, reference = ov.mlp()
    check(ov.session(made, options, severity=2), reference)
    assert f"option {next(iter(options))} has no effect on device CPU" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"device_typ": "CPU"}, "device_type"),
        ({"precision": "FP64"}, "FP32"),
        ({"num_of_threads": "many"}, "num_of_threads"),
        ({"num_streams": 0}, "num_streams"),
        ({"reshape_input": "x[1,2"}, "reshape_input"),
    ],
)
def test_wrong_options_are_errors(options, text):
    made, _ = ov.mlp()
    with pytest.raises(Exception, match=text):
        session = ov.session(made, options, config={"session.fallback": "forbid"})
        session.run(None, {"x": sample()})


def test_reshape_names_an_input_that_is_not_there():
    made, _ = ov.mlp()
    with pytest.raises(Exception, match="its inputs are: x"):
        ov.session(made, {"reshape_input": "image[1,16]"})


def test_shapes_compiled_one_by_one():
    made, reference = ov.mlp()
    session = ov.session(made, {"disable_dynamic_shapes": True})
    for batch in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2, 1]:
        check(session, reference, batch)


def test_properties_from_a_file(tmp_path):
    made, reference = ov.mlp()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"CPU": {"NUM_STREAMS": "2", "ENABLE_CPU_PINNING": False}, "GPU": {"NUM_STREAMS": "1"}}))
    check(ov.session(made, {"load_config": config}), reference)
    config.write_text('{"CPU": {"NUM_STREAMS" "2"}}')
    with pytest.raises(Exception, match="line 1.*':'"):
        ov.session(made, {"load_config": config}, config={"session.fallback": "forbid"})
    config.write_text(json.dumps({"CPU": {"NO_SUCH_PROPERTY": "1"}}))
    with pytest.raises(Exception, match="NO_SUCH_PROPERTY"):
        ov.session(made, {"load_config": config}, config={"session.fallback": "forbid"})


@pytest.mark.parametrize("device", ["TPU", "GPU", "NPU"])
def test_device_that_is_not_there(device):
    made, reference = ov.mlp()
    session = ov.session(made, {"device_type": device})
    check(session, reference)
    assert CPU in session.get_providers()
    if set(ov.placed(session).values()) == {CPU}:
        with pytest.raises(Exception, match=device):
            ov.session(made, {"device_type": device}, config={"session.fallback": "forbid"})


def in_a_process(environment, code):
    """Libraries stay open for the life of a process: broken ones get their own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)


USE = """
import ov, numpy as np
made, reference = ov.mlp()
try:
    session = ov.session(made, severity=2)
    x = np.ones((2, 16), np.float32)
    assert np.allclose(session.run(None, {"x": x})[0], reference(x), rtol=1e-4)
    print(session.get_providers())
    ov.session(made, config={"session.fallback": "forbid"})
except Exception as error:
    print(error)
"""


@pytest.mark.without_openvino
def test_folder_without_openvino(tmp_path):
    result = in_a_process({"EPONA_OPENVINO_DIR": str(tmp_path)}, USE)
    assert f"['{CPU}']" in result.stdout, result.stdout + result.stderr
    assert str(tmp_path) in result.stdout + result.stderr
    assert "pip install openvino==" in result.stdout + result.stderr


@pytest.mark.without_openvino
def test_library_that_is_none(tmp_path):
    (tmp_path / "libopenvino_c.so.2641").write_bytes(b"not a library" * 100)
    (tmp_path / "libopenvino_intel_cpu_plugin.so").write_bytes(b"")
    result = in_a_process({"EPONA_OPENVINO_DIR": str(tmp_path)}, USE)
    assert f"['{CPU}']" in result.stdout, result.stdout + result.stderr
    assert "libopenvino_c.so.2641" in result.stdout + result.stderr


@pytest.mark.without_openvino
def test_old_version(tmp_path):
    (tmp_path / "libopenvino_c.so.2320").write_bytes(b"")
    (tmp_path / "libopenvino_intel_cpu_plugin.so").write_bytes(b"")
    result = in_a_process({"EPONA_OPENVINO_DIR": str(tmp_path)}, USE)
    assert "2023.2.0" in result.stdout + result.stderr and f"['{CPU}']" in result.stdout


def test_probe_opens_no_library():
    code = """
import time, ov
start = time.monotonic()
ov.ort.get_available_providers()
assert time.monotonic() - start < 0.2
print("libopenvino" in open("/proc/self/maps").read())
"""
    result = in_a_process({}, code)
    assert result.stdout.strip() == "False", result.stdout + result.stderr
