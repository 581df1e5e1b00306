"""The Python API against onnxruntime: same names, same results, same classes of errors."""

import pathlib
import threading

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import epona
from epona.capi import onnxruntime_pybind11_state as errors

ADD = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] a, float[2] b) => (float[N,2] s, float[N,2] d) { s = Add(a, b)  d = Sub(a, b) }"""


def model_bytes(text=ADD):
    return parser.parse_model(text).SerializeToString()


@pytest.fixture(scope="module")
def pair():
    return epona.InferenceSession(model_bytes()), onnxruntime.InferenceSession(model_bytes())


A = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
B = np.array([10, 20], np.float32)


def test_metadata_is_that_of_the_peer(pair):
    for ours, theirs in zip(
        pair[0].get_inputs() + pair[0].get_outputs(), pair[1].get_inputs() + pair[1].get_outputs(), strict=True
    ):
        assert (ours.name, ours.type, ours.shape) == (theirs.name, theirs.type, theirs.shape)
    assert pair[0].get_providers() == pair[1].get_providers() == ["CPUExecutionProvider"]


@pytest.mark.parametrize("names", [None, [], ["s"], ["d", "s"], ["s", "s"]])
def test_outputs_in_the_order_asked(pair, names):
    ours, theirs = (session.run(names, {"a": A, "b": B}) for session in pair)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "a", [A[::-1], np.asfortranarray(A), np.repeat(A, 2, 1)[:, ::2], A.tolist()], ids=["reversed", "fortran", "strided", "list"]
)
def test_any_layout(pair, a):
    for x, y in zip(pair[0].run(None, {"a": a, "b": B}), pair[1].run(None, {"a": a, "b": B}), strict=True):
        np.testing.assert_array_equal(x, y)


def test_big_endian_is_converted(pair):
    np.testing.assert_array_equal(pair[0].run(["s"], {"a": A.astype(">f4"), "b": B})[0], A + B)


@pytest.mark.parametrize(
    "feed, names",
    [
        ({"a": A.astype(np.float64), "b": B}, None),
        ({"a": A[0], "b": B}, None),
        ({"a": A[:, :1], "b": B}, None),
        ({"a": A, "b": B, "zz": B}, None),
        ({"a": A, "b": B}, ["zzz"]),
        ({"a": A}, None),
        ({}, None),
    ],
    ids=["dtype", "rank", "dim", "extra", "output", "missing", "empty"],
)
def test_errors_have_the_classes_of_the_peer(pair, feed, names):
    raised = []
    for session in pair:
        with pytest.raises(Exception) as info:
            session.run(names, feed)
        raised.append(type(info.value).__name__)
    assert raised[0] == raised[1]


def test_error_text_names_the_input(pair):
    with pytest.raises(errors.InvalidArgument, match=r"\[ONNXRuntimeError\] : 2 : INVALID_ARGUMENT : .*'a'"):
        pair[0].run(None, {"a": A.astype(np.float64), "b": B})


def test_model_sources(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(model_bytes())
    for source in (str(path), path, model_bytes()):
        np.testing.assert_array_equal(epona.InferenceSession(source).run(["s"], {"a": A, "b": B})[0], A + B)
    with pytest.raises(errors.NoSuchFile):
        epona.InferenceSession(str(tmp_path / "missing.onnx"))
    with pytest.raises(errors.InvalidProtobuf):
        epona.InferenceSession(b"\x08\x08garbage")
    with pytest.raises(errors.InvalidArgument):
        epona.InferenceSession(b"")
    for bad in (None, 3, bytearray(model_bytes()), ""):
        with pytest.raises(TypeError):
            epona.InferenceSession(bad)


@pytest.mark.parametrize(
    "text, kind",
    [
        ('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Bogus(x) }', "InvalidGraph"),
        ('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Add(x) }', "InvalidGraph"),
        ('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Add(x, q) }', "InvalidArgument"),
        ('<ir_version: 8, opset_import: ["" : 99]> g (float[2] x) => (float[2] y) { y = Neg(x) }', "Fail"),
        ('<ir_version: 77, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg(x) }', "Fail"),
        ('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (int32[2] y) { y = Neg(x) }', "Fail"),
    ],
)
def test_bad_models_raise_what_the_peer_raises(text, kind):
    for module in (epona, onnxruntime):
        with pytest.raises(Exception) as info:
            module.InferenceSession(model_bytes(text))
        assert type(info.value).__name__ == kind


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname", "missing.bin", "*/_ORT_MEM_ADDR_/*", ""])
def test_external_data_stays_in_its_folder(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(8))
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Add(x, w) }')
    tensor = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(errors.Fail, match="w"):
        epona.InferenceSession(path)


def test_external_data_is_read(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"\0" * 16 + np.array([5, 7], np.float32).tobytes())
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Add(x, w) }')
    tensor = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "16"), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    np.testing.assert_array_equal(epona.InferenceSession(tmp_path / "m.onnx").run(None, {"x": B})[0], B + [5, 7])


def test_strings_keep_every_byte():
    session = epona.InferenceSession(
        model_bytes('<ir_version: 10, opset_import: ["" : 20]> g (string[N] x) => (string[N] y) { y = Identity(x) }')
    )
    for x in (np.array(["a\0b", "é", ""], object), np.array(["ab", "c"]), np.array([b"ab", b"cd"])):
        got = session.run(None, {"x": x})[0]
        assert [str(v) for v in got] == [v.decode() if isinstance(v, bytes) else str(v) for v in x]


def test_ort_values_share_memory(pair):
    value = epona.OrtValue.ortvalue_from_numpy(A)
    assert value.shape() == [3, 2] and value.data_type() == "tensor(float)" and value.device_name() == "cpu"
    assert np.shares_memory(value.numpy(), A)
    result = pair[0].run_with_ort_values(["s"], {"a": value, "b": epona.OrtValue.ortvalue_from_numpy(B)})
    np.testing.assert_array_equal(result[0].numpy(), A + B)


def test_options(tmp_path):
    options = epona.SessionOptions()
    assert options.graph_optimization_level == epona.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert options.log_severity_level == -1 and options.intra_op_num_threads == 0
    options.add_session_config_entry("some.key", "1")
    assert options.get_session_config_entry("some.key") == "1"
    with pytest.raises(RuntimeError):
        options.get_session_config_entry("nope")
    with pytest.raises(RuntimeError):
        options.add_session_config_entry("", "1")
    options.add_free_dimension_override_by_name("N", 3)
    options.optimized_model_filepath = str(tmp_path / "out.onnx")
    session = epona.InferenceSession(model_bytes(), options)
    assert session.get_inputs()[0].shape == [3, 2]
    onnx.load(tmp_path / "out.onnx")


def test_terminated_run_fails(pair):
    options = epona.RunOptions()
    options.terminate = True
    with pytest.raises(errors.Fail, match="terminate"):
        pair[0].run(None, {"a": A, "b": B}, options)


def test_unavailable_and_unknown_providers():
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        session = epona.InferenceSession(model_bytes(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(RuntimeError, match="Did you mean 'CUDAExecutionProvider'"):
        epona.InferenceSession(model_bytes(), providers=["CUDAExecutionProvide"])
    assert epona.InferenceSession(model_bytes(), providers="CPUExecutionProvider").get_providers()


def test_one_session_serves_many_threads(pair):
    wrong = []

    def work(n):
        for i in range(100):
            a = np.full((1 + (n + i) % 4, 2), i, np.float32)
            if not np.array_equal(pair[0].run(["s"], {"a": a, "b": B})[0], a + B):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_overridable_initializer():
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    session = epona.InferenceSession(model.SerializeToString())
    assert [v.name for v in session.get_inputs()] == ["x"]
    assert [v.name for v in session.get_overridable_initializers()] == ["w"]
    np.testing.assert_array_equal(session.run(None, {"x": B})[0], [11, 22])
    np.testing.assert_array_equal(session.run(None, {"x": B, "w": B})[0], [20, 40])
    np.testing.assert_array_equal(session.run(None, {"x": B})[0], [11, 22])


def test_stubs_ship():
    folder = pathlib.Path(epona.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_epona.pyi").exists()
