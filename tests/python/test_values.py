"""OrtValue, SparseTensor and numpy arrays of every kind, against onnxruntime where it can do the same."""

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import parser

import epona

PAIR = (epona, onnxruntime)
EXTENSION = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int4", "uint4"]
IDENTITY = '<ir_version: 11, opset_import: ["" : 23]> g ({0} x) => ({0} y) {{ y = Identity(x) }}'


def session(text):
    return epona.InferenceSession(parser.parse_model(text).SerializeToString())


def facts(value):
    return (
        value.data_type(),
        value.element_type(),
        list(value.shape()),
        value.device_name(),
        value.is_tensor(),
        value.is_tensor_sequence(),
        value.is_sparse_tensor(),
        value.has_value(),
    )


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (2, 3)])
def test_values_from_numpy(dtype, shape):
    array = np.ones(shape, dtype)
    ours, theirs = (module.OrtValue.ortvalue_from_numpy(array) for module in PAIR)
    assert facts(ours) == facts(theirs)
    assert ours.tensor_size_in_bytes() == theirs.tensor_size_in_bytes() == array.nbytes
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), strict=True)
    if array.size:
        assert ours.data_ptr() == theirs.data_ptr() == array.ctypes.data


def test_memory_is_shared_both_ways():
    array = np.zeros(4, np.float32)
    value = epona.OrtValue.ortvalue_from_numpy(array)
    array[1] = 5
    value.numpy()[2] = 7
    assert value.numpy().tolist() == array.tolist() == [0, 5, 7, 0]
    other = epona.OrtValue.ortvalue_from_numpy(np.arange(6, dtype=np.int64)[::2])
    assert other.numpy().tolist() == [0, 2, 4]


@pytest.mark.parametrize("element_type", [np.float32, "int64", 10, np.dtype("u1"), bool])
def test_values_from_shape(element_type):
    values = [module.OrtValue.ortvalue_from_shape_and_type([2, 3], element_type) for module in PAIR]
    assert facts(values[0]) == facts(values[1])
    for value in values:
        value.update_inplace(np.ones((2, 3), value.numpy().dtype))
        assert value.numpy().tolist() == np.ones((2, 3)).tolist()


@pytest.mark.parametrize("arguments", [([2], "zz"), ([2], 99), ([2], np.datetime64), ([-1], np.float32)])
def test_bad_shapes_and_types_are_refused(arguments):
    with pytest.raises(RuntimeError):
        epona.OrtValue.ortvalue_from_shape_and_type(*arguments)


def test_update_inplace_is_checked():
    value = epona.OrtValue.ortvalue_from_shape_and_type([2], np.float32)
    value.update_inplace(epona.OrtValue.ortvalue_from_numpy(np.array([1, 2], "f")))
    assert value.numpy().tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="does not match the size"):
        value.update_inplace(np.zeros(3, np.float32))
    # onnxruntime copies the bytes.
    with pytest.raises(RuntimeError, match="convert it first"):
        value.update_inplace(np.zeros(2, np.int32))
    target = epona.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32))
    epona.copy_tensors([value], [target])
    assert target.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("device, error", [("cuda", RuntimeError), ("dml", RuntimeError), ("tpu", Exception)])
def test_devices_that_are_not_here(device, error):
    for module in PAIR:
        with pytest.raises(error):
            module.OrtValue.ortvalue_from_numpy(np.zeros(2, np.float32), device, 0)


@pytest.mark.parametrize("name", EXTENSION)
def test_extension_types(name):
    array = np.array([[-1, 1, 2], [3, 0, 1]]).clip(0 if name[0] == "u" else -8).astype(name)
    assert array.dtype == getattr(ml_dtypes, name)
    value = epona.OrtValue.ortvalue_from_numpy(array)
    assert value.shape() == [2, 3]
    np.testing.assert_array_equal(value.numpy().astype(np.float32), array.astype(np.float32))
    made = epona.OrtValue.ortvalue_from_shape_and_type([2, 3], array.dtype)
    assert made.element_type() == value.element_type()
    made.update_inplace(array)
    np.testing.assert_array_equal(made.numpy().astype(np.float32), array.astype(np.float32))
    text = value.data_type()[len("tensor(") : -1] + "[2,3]"
    result = session(IDENTITY.format(text)).run(None, {"x": array})[0]
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result.astype(np.float32), array.astype(np.float32))


def test_bits_of_another_type():
    bits = np.array([0x3F80, 0x4000], np.uint16)
    ours, theirs = (module.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16) for module in PAIR)
    assert facts(ours) == facts(theirs)
    assert ours.numpy().astype(np.float32).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="same size"):
        epona.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 1)


@pytest.mark.parametrize("name, number, per_byte", [("uint4", 21, 2), ("int4", 22, 2), ("float4e2m1", 23, 2), ("uint2", 25, 4)])
@pytest.mark.parametrize("shape", [(8,), (3,), (2, 2), ()])
def test_bytes_as_packed_elements(name, number, per_byte, shape):
    """An array of n bytes is taken for n elements, which its beginning holds."""
    array = np.frombuffer(bytes([0x21, 0x43, 0xE5, 0x87, 9, 9, 9, 9]), np.uint8)[: int(np.prod(shape))].reshape(shape)
    ours, theirs = (module.OrtValue.ortvalue_from_numpy_with_onnx_type(array, number) for module in PAIR)
    assert facts(ours) == facts(theirs)
    assert ours.data_ptr() == array.ctypes.data
    assert ours.tensor_size_in_bytes() == theirs.tensor_size_in_bytes() == -(-array.size // per_byte)
    if name in ("int4", "uint4"):
        text = f'<ir_version: 10, opset_import: ["" : 21]> g ({name}{list(shape)} a) => (int32{list(shape)} s) {{ s = Cast<to=6>(a) }}'
        model = parser.parse_model(text.replace("[]", "")).SerializeToString()
        results = [m.InferenceSession(model).run(None, {"a": v})[0] for m, v in zip(PAIR, (ours, theirs))]
        np.testing.assert_array_equal(*results)
        assert ours.numpy().astype(np.int32).tolist() == results[0].tolist()
    for wrong in (np.zeros(4, np.int16), np.zeros(4, np.float32)):
        for module in PAIR:
            with pytest.raises(RuntimeError):
                module.OrtValue.ortvalue_from_numpy_with_onnx_type(wrong, number)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8"])
def test_dlpack_both_ways(dtype):
    array = np.ones((2, 3), dtype)
    value = epona.OrtValue.from_dlpack(array)
    assert value.data_ptr() == array.ctypes.data and value.numpy().dtype == array.dtype
    back = np.from_dlpack(value)
    np.testing.assert_array_equal(back, array, strict=True)
    assert back.ctypes.data == array.ctypes.data
    assert value.__dlpack_device__() == (1, 0)
    again = epona.OrtValue.from_dlpack(value.to_dlpack())
    assert again.data_ptr() == array.ctypes.data


def test_dlpack_with_the_peer():
    theirs = onnxruntime.OrtValue.ortvalue_from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    ours = epona.OrtValue.from_dlpack(theirs)
    assert ours.numpy().tolist() == theirs.numpy().tolist() and ours.data_ptr() == theirs.data_ptr()
    back = onnxruntime.OrtValue.from_dlpack(ours)
    assert back.numpy().tolist() == theirs.numpy().tolist()


def test_dlpack_of_strides_and_of_memory_that_is_gone():
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4).transpose(2, 0, 1)[::2]
    np.testing.assert_array_equal(epona.OrtValue.from_dlpack(array).numpy(), array)
    values = [epona.OrtValue.from_dlpack(np.full(1000, i)) for i in range(50)]
    kept = [np.from_dlpack(value) for value in values]
    del values
    assert all((array == i).all() for i, array in enumerate(kept))
    with pytest.raises(TypeError):
        epona.OrtValue.from_dlpack([1, 2])
    with pytest.raises(RuntimeError, match="DLPack has no element type"):
        epona.OrtValue.ortvalue_from_numpy(np.array(["a"])).to_dlpack()


STRINGS = [
    np.array(["a\0b", "é", "", "\0", "end\0"], object),
    np.array(["ab", "c", "ﬃ𝄞"]),
    np.array(["a\0b", "c"]),
    np.array([b"ab", b"c\0d"]),
    np.array([b"\xff\xfe", b"ok"]),
    np.array(["x", 1, 2.5, None, b"y"], object),
    np.array([["a", "b"], ["c", "d"]]).T,
    np.array("alone"),
    np.array([], "<U3"),
    np.array(["a", "b", "c", "d"], object)[::2],
    np.array(["ab", "c\0d", ""], np.dtypes.StringDType()),
]


@pytest.mark.parametrize("array", STRINGS, ids=range(len(STRINGS)))
def test_strings_of_every_kind(array):
    def text(item):
        return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)

    expected = np.array([text(item) for item in array.ravel().tolist()], object).reshape(array.shape)
    dims = ",".join(map(str, array.shape))
    model = session(IDENTITY.format(f"string[{dims}]" if dims else "string[]"))
    if dims:
        np.testing.assert_array_equal(model.run(None, {"x": array})[0], expected, strict=True)
    value = epona.OrtValue.ortvalue_from_numpy(array)
    np.testing.assert_array_equal(value.numpy(), expected, strict=True)
    assert value.data_type() == "tensor(string)" and value.shape() == list(array.shape)


def test_sequences():
    items = [np.ones((2, 3), "f"), np.zeros((1,), "f")]
    value = epona.OrtValue.ortvalue_from_sequence(items)
    assert value.is_tensor_sequence() and value.data_type() == "seq(tensor(float))" and value.element_type() == 1
    assert [item.shape() for item in value.to_sequence()] == [[2, 3], [1]]
    for got, item in zip(value.numpy(), items, strict=True):
        np.testing.assert_array_equal(got, item)
    with pytest.raises(RuntimeError, match="one type"):
        epona.OrtValue.ortvalue_from_sequence([np.ones(2, "f"), np.ones(2, "i4")])
    for member in ("shape", "data_ptr", "tensor_size_in_bytes", "device_name"):
        with pytest.raises(RuntimeError, match="Only OrtValues that are Tensors"):
            getattr(value, member)()
    model = session('<ir_version: 8, opset_import: ["" : 17]> g (seq(float[N]) q, int64 i) => (float[M] y) { y = SequenceAt(q, i) }')
    feed = {"q": epona.OrtValue.ortvalue_from_sequence([np.ones(2, "f"), np.zeros(3, "f")])}
    assert model.run(None, feed | {"i": np.int64(1) + np.zeros((), np.int64)})[0].tolist() == [0, 0, 0]


def test_maps():
    value = epona.OrtValue.ortvalue_from_map({1: 0.5, 3: 2.0})
    assert value.data_type() == "map(int64,tensor(double))" and value.numpy() == {1: 0.5, 3: 2.0}
    assert epona.OrtValue.ortvalue_from_map({"a": 1, "b": 2}).numpy() == {"a": 1, "b": 2}
    with pytest.raises(TypeError):
        epona.OrtValue.ortvalue_from_map({(1, 2): 3})
    model = session(
        '<ir_version: 8, opset_import: ["ai.onnx.ml" : 3, "" : 17]> g (map(int64,float) m) => (float[1,N] y)'
        ' { y = ai.onnx.ml.CastMap<cast_to="TO_FLOAT">(m) }'
    )
    assert model.run(None, {"m": {0: 1.5, 1: 2.5}})[0].tolist() == [[1.5, 2.5]]


def test_optional_values():
    value = epona.OrtValue.ortvalue_none()
    assert not value.has_value() and value.numpy() is None
    text = '<ir_version: 8, opset_import: ["" : 18]> g (optional(float[2]) x) => (bool y) { y = OptionalHasElement(x) }'
    model = session(text)
    for feed, expected in ((None, False), (value, False), (np.ones(2, "f"), True)):
        assert bool(model.run(None, {"x": feed})[0]) is expected


class TestSparse:
    shape = np.array([2, 3], np.int64)
    values = np.array([1, 2], np.float32)

    def make(self, module, kind):
        device = module.OrtDevice.make("cpu", 0)
        sparse = module.SparseTensor
        if kind == "csr":
            return sparse.sparse_csr_from_numpy(
                self.shape, self.values, np.array([2, 0], "i8"), np.array([0, 1, 2], "i8"), device
            )
        indices = np.array([2, 3], "i8") if kind == "linear" else np.array([[0, 2], [1, 0]], "i8")
        return sparse.sparse_coo_from_numpy(self.shape, self.values, indices, device)

    @pytest.mark.parametrize("kind", ["csr", "linear", "coordinates"])
    def test_as_the_peer(self, kind):
        ours, theirs = (self.make(module, kind) for module in PAIR)
        assert ours.format().name == theirs.format().name and int(ours.format()) == int(theirs.format())
        assert list(ours.dense_shape()) == list(theirs.dense_shape())
        assert (ours.data_type(), ours.device_name()) == (theirs.data_type(), theirs.device_name())
        np.testing.assert_array_equal(ours.values(), theirs.values())
        assert ours.to_dense().tolist() == [[0, 0, 1], [2, 0, 0]]
        if kind == "csr":
            for part in ("inner", "outer"):
                np.testing.assert_array_equal(*(getattr(t.as_csrc_view(), part)() for t in (ours, theirs)))
        else:
            np.testing.assert_array_equal(ours.as_coo_view().indices(), theirs.as_coo_view().indices())
        for tensor in (ours, theirs):
            with pytest.raises(RuntimeError):
                tensor.as_coo_view() if kind == "csr" else tensor.as_csrc_view()
        values = [module.OrtValue.ort_value_from_sparse_tensor(t) for module, t in zip(PAIR, (ours, theirs))]
        assert facts(values[0]) == facts(values[1])
        assert values[0].as_sparse_tensor().format() == ours.format()
        for value in values:
            with pytest.raises(RuntimeError):
                value.numpy()

    def test_positions_are_checked(self):
        device = epona.OrtDevice.make("cpu", 0)
        for indices in ([0, 6], [-1, 0], [0, 1, 2]):
            with pytest.raises(ValueError):
                epona.SparseTensor.sparse_coo_from_numpy(self.shape, self.values, np.array(indices), device)
        with pytest.raises(ValueError):
            epona.SparseTensor.sparse_csr_from_numpy(self.shape, self.values, np.array([0, 5]), np.array([0, 1, 2]), device)

    def test_is_fed_as_a_dense_tensor(self):
        model = session(IDENTITY.format("float[2,3]"))
        for feed in (self.make(epona, "csr"), epona.OrtValue.ort_value_from_sparse_tensor(self.make(epona, "linear"))):
            assert model.run(None, {"x": feed})[0].tolist() == [[0, 0, 1], [2, 0, 0]]


def test_devices():
    for name in ("cpu", "cuda", "gpu", "npu", "dml", "cann", "webgpu"):
        parts = [module.OrtDevice.make(name, 1) for module in PAIR]
        ours, theirs = (
            (d.device_type(), d.device_id(), d.device_vendor_id(), d.device_mem_type()) for d in parts
        )
        assert ours == theirs
    for module in PAIR:
        with pytest.raises(Exception, match="Unsupported device type: tpu"):
            module.OrtDevice.make("tpu", 0)
        info = module.OrtMemoryInfo("Cpu", module.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, module.OrtMemType.DEFAULT)
        assert (info.name, info.device_id, int(info.mem_type), int(info.allocator_type)) == ("Cpu", 0, 0, 1)
        with pytest.raises(RuntimeError):
            module.OrtMemoryInfo("zzz", module.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, module.OrtMemType.DEFAULT)
        config = module.OrtArenaCfg({"max_mem": 5})
        assert config.max_mem == 5


@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble, "M8[s]", "m8[s]", [("a", "f4")], "V4"])
def test_arrays_that_no_tensor_can_hold(dtype):
    array = np.zeros(2, dtype)
    model = session(IDENTITY.format("float[N]"))
    with pytest.raises(RuntimeError, match="have no tensor type"):
        epona.OrtValue.ortvalue_from_numpy(array)
    with pytest.raises(RuntimeError, match=r"have no tensor type, for input 'x' \(tensor\(float\)\)"):
        model.run(None, {"x": array})
    for source in ([1.0, 2.0], 2.0, None, b"abc"):
        with pytest.raises((RuntimeError, TypeError)):
            epona.OrtValue.ortvalue_from_numpy(source)


LISTS = [[1.5, 2.0], [1, 2], [True, False], ["a", "b"], ["1", "2"], [300, -1], [None, 1], [2**63], [], [float("nan")], [1 + 2j]]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast", "ignore:invalid value encountered in cast")
@pytest.mark.parametrize("element", ["int64", "int8", "uint8", "float", "float16", "double", "bool", "string"])
@pytest.mark.parametrize("source", LISTS, ids=str)
def test_lists_become_what_the_peer_makes_of_them(element, source):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({element}[N] x) => ({element}[N] y) {{ y = Identity(x) }}')
    results = []
    for module in PAIR:
        try:
            results.append(module.InferenceSession(model.SerializeToString()).run(None, {"x": source})[0])
        except RuntimeError as error:
            results.append(error)
    ours, theirs = results
    if isinstance(theirs, RuntimeError):
        assert isinstance(ours, RuntimeError) and f"for input 'x' (tensor({element}))" in str(ours)
    else:
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_lists_for_the_types_of_ml_dtypes():
    for name in ("bfloat16", "float8e5m2", "int4"):
        result = session(IDENTITY.format(f"{name}[N]")).run(None, {"x": [1, -2]})[0]
        assert result.astype(np.float32).tolist() == [1, -2] and result.dtype.kind not in "OU"


def test_what_numpy_says_comes_with_the_name_of_the_input():
    model = session(IDENTITY.format("float[N,2]"))
    for source in ([[1.0, 2.0], [3.0]], "abc", [["a", "b"]]):
        with pytest.raises(RuntimeError, match=r"for input 'x' \(tensor\(float\)\)"):
            model.run(None, {"x": source})


def test_every_part_of_a_value_is_checked():
    """A kernel that reads doubles must not be given the memory of bytes."""
    small = np.zeros(3, np.int8)
    text = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g ({}) => ({}) {{ {} }}'
    item = session(text.format("seq(double[N]) q, int64 i", "double[K] y", "y = SequenceAt(q, i)"))
    sequence = epona.OrtValue.ortvalue_from_sequence([small])
    errors = epona.capi.onnxruntime_pybind11_state
    with pytest.raises(errors.InvalidArgument, match=r"tensor\(int8\).*'q', item 0"):
        item.run(None, {"q": sequence, "i": np.array(0)})
    with pytest.raises(RuntimeError, match=r"tensor\(int8\).*'q', item 0"):
        item.io_binding().bind_ortvalue_input("q", sequence)
    get = session(text.format("optional(double[N]) q", "double[K] y", "y = OptionalGetElement(q)").replace(": 17", ": 18"))
    assert get.run(None, {"q": np.ones(3)})[0].tolist() == [1, 1, 1]
    for value in (small, epona.OrtValue.ortvalue_from_numpy(small)):
        with pytest.raises(errors.InvalidArgument, match=r"tensor\(int8\).*'q'"):
            get.run(None, {"q": value})
    cast = session(text.format("map(int64,float) m", "float[1,N] y", 'y = ai.onnx.ml.CastMap<cast_to="TO_FLOAT">(m)'))
    with pytest.raises(errors.InvalidArgument, match="'m', the keys"):
        cast.run(None, {"m": epona.OrtValue.ortvalue_from_map({"a": 1.0})})
    with pytest.raises(errors.InvalidArgument, match="'m', the values"):
        cast.run(None, {"m": epona.OrtValue.ortvalue_from_map({1: 1.0})})  # doubles
    with pytest.raises(RuntimeError, match="input 'm'"):
        cast.run(None, {"m": {1: "x"}})
    with pytest.raises(TypeError, match="all numbers or all strings"):
        epona.OrtValue.ortvalue_from_map({1: 1.0, "a": 2.0})


def test_memory_that_is_read_only_is_not_written(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    model = session(IDENTITY.format("float[N]"))
    for array in (np.load(tmp_path / "a.npy", mmap_mode="r"), np.frombuffer(np.ones(4, np.float32).tobytes(), np.float32)):
        value = epona.OrtValue.ortvalue_from_numpy(array)
        assert model.run(None, {"x": value})[0].tolist() == [1, 1, 1, 1]
        assert not value.numpy().flags.writeable
        with pytest.raises(RuntimeError, match="read-only"):
            value.update_inplace(np.zeros(4, np.float32))
        with pytest.raises(RuntimeError, match="output 'y'.*read-only"):
            model.io_binding().bind_ortvalue_output("y", value)
        copy = epona.OrtValue.from_dlpack(value)
        copy.update_inplace(np.zeros(4, np.float32))
        assert array.tolist() == [1, 1, 1, 1]
        with pytest.raises(BufferError):
            value.__dlpack__(copy=False)


def test_dlpack_arguments():
    value = epona.OrtValue.ortvalue_from_numpy(np.arange(3, dtype=np.float32))
    assert np.from_dlpack(value).ctypes.data == value.data_ptr()
    copy = epona.OrtValue.from_dlpack(value.__dlpack__(copy=True, max_version=(1, 0), dl_device=(1, 0), stream=None))
    assert copy.data_ptr() != value.data_ptr() and copy.numpy().tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="host memory"):
        value.__dlpack__(dl_device=(2, 0))


def test_bytes_that_are_no_utf8_come_back():
    model = session(IDENTITY.format("string[N]"))
    raw = np.array([b"\xff\xfe", b"a\0b\xc3"], object)
    once = model.run(None, {"x": raw})[0]
    twice = model.run(None, {"x": once})[0]
    assert [text.encode("utf-8", "surrogateescape") for text in twice] == raw.tolist()


@pytest.mark.parametrize(
    "body",
    [
        "g (float[n] x) => (int64[a, b] p, int64[a, b] q) { p = NonZero(x) q = Identity(p) }",
        "g (float[n] x) => (seq(float[m]) p, float[k] q) <int64 zero = {0}> { p = SequenceConstruct(x, x) q = SequenceAt(p, zero) }",
        "g (float[n] x) => (seq(float[m]) p, seq(float[m]) q) { p = SequenceConstruct(x, x) q = SequenceInsert(p, x) }",
    ],
)
def test_results_do_not_share_memory(body):
    """Neither with each other nor with inputs: what a caller writes into one is in that one alone. (The peer shares in SequenceInsert.)"""
    x = np.ones(3, np.float32)

    def flat(results):
        return [array for result in results for array in (result if isinstance(result, list) else [result])]

    made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {body}').SerializeToString()
    arrays = [*flat(epona.InferenceSession(made).run(None, {"x": x})), x]
    for i, array in enumerate(arrays):
        before = [other.copy() for other in arrays]
        array[...] = 7
        for j, (other, kept) in enumerate(zip(arrays, before, strict=True)):
            assert i == j or np.array_equal(other, kept)
