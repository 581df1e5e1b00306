"""Values in the memory of devices, on the providers for tests: a copy that is missing is a wrong answer, one too many is
counted."""

import gc
import threading

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import parser

import epona
from epona.capi import onnxruntime_pybind11_state as errors

CPU, TEST, OTHER = "CPUExecutionProvider", "TestExecutionProvider", "OtherTestExecutionProvider"
# A step of a decoder: the cache grows by what is fed.
STEP = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4] x, float[P,4] past) => (float[N,4] y, float[T,4] present) <float[4] w = {1.0, 2.0, 3.0, 4.0}> {
  a = Mul(x, w)  present = Concat<axis = 0>(past, a)  y = Neg(a) }""").SerializeToString()
W = np.array([1, 2, 3, 4], np.float32)
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
PAST = np.arange(12, dtype=np.float32).reshape(3, 4)
PRESENT = np.concatenate([PAST, X * W])


def session_of(model=STEP, options=None, providers=None, **kwargs):
    return epona.InferenceSession(model, providers=providers or [(TEST, options or {}), CPU], **kwargs)


def on(array, device="test", index=0):
    return epona.OrtValue.ortvalue_from_numpy(array, device, index)


class Copies:
    """What a block of code copies to and from a device: {"to_device": (times, bytes), ...}, where it is not nothing."""

    def __init__(self, device="test:0"):
        self.device = device

    def __enter__(self):
        self.before = epona._epona._test_device_traffic(self.device)
        return self

    def __exit__(self, *_):
        now = epona._epona._test_device_traffic(self.device)
        self.counts = {}
        for way in ("to_device", "to_host", "within"):
            times, size = (a - b for a, b in zip(now[way], self.before[way]))
            if times:
                self.counts[way] = (times, size)


def used(device="test:0"):
    gc.collect()
    return epona._epona._test_device_traffic(device)["used"]


def test_a_value_on_a_device():
    before = used()
    value = on(X, "test", 1)
    assert value.device_name() == "test" and value.device_id() == 1 and value.shape() == [2, 4]
    assert value.data_type() == "tensor(float)" and value.tensor_size_in_bytes() == 32
    assert value.data_ptr() not in (0, X.ctypes.data)
    back = value.numpy()
    np.testing.assert_array_equal(back, X)
    back[:] = 0  # a copy
    np.testing.assert_array_equal(value.numpy(), X)
    address = value.data_ptr()
    with Copies("test:1") as copies:
        value.update_inplace(X * 2)
    assert copies.counts == {"to_device": (1, 32)} and value.data_ptr() == address
    np.testing.assert_array_equal(value.numpy(), X * 2)
    with pytest.raises(RuntimeError, match="size"):
        value.update_inplace(X[:1])
    with pytest.raises(RuntimeError, match="convert it first"):
        value.update_inplace(X.astype(np.int32))
    assert used() == before


def test_values_are_copied_between_devices():
    a, b, c = on(X), on(X * 3, "test", 1), on(X * 5, "othertest", 1)
    for source, expected in ((b, X * 3), (c, X * 5), (epona.OrtValue.ortvalue_from_numpy(X * 7), X * 7)):
        a.update_inplace(source)
        np.testing.assert_array_equal(a.numpy(), expected)
    host = epona.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    host.update_inplace(c)
    np.testing.assert_array_equal(host.numpy(), X * 5)
    with Copies() as copies:
        a.update_inplace(on(X * 9))
    assert copies.counts == {"to_device": (1, 32), "within": (1, 32)}
    np.testing.assert_array_equal(a.numpy(), X * 9)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3)])
def test_every_type_and_shape(dtype, shape):
    array = np.ones(shape, dtype)
    value = on(array)
    assert value.shape() == list(shape) and value.data_ptr() != 0
    result = value.numpy()
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)
    made = epona.OrtValue.ortvalue_from_shape_and_type(shape, value.element_type(), "test", 1)
    made.update_inplace(array)
    assert (made.device_name(), made.device_id()) == ("test", 1)
    np.testing.assert_array_equal(made.numpy(), array)


def test_a_value_by_native_device_and_memory_info():
    device = epona.OrtDevice.make("test", 1)._get_c_device()
    native = epona._epona.OrtValue.ortvalue_from_numpy(X, device)
    assert (native.device_name(), native.device_id()) == ("test", 1)
    with pytest.raises(RuntimeError, match="gpu:0"):
        info = epona.OrtMemoryInfo("Cuda", epona.OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, epona.OrtMemType.DEFAULT)
        epona.OrtValue.ortvalue_from_shape_and_type([2], np.float32, memory_info=info)


def test_what_cannot_be_on_a_device():
    with pytest.raises(Exception, match="strings are objects of the host.*test:0"):
        on(np.array(["a", "b"]))
    with pytest.raises(BufferError, match="test:0.*numpy"):
        on(X).__dlpack__()
    assert on(X).__dlpack_device__() == (12, 0)
    np.testing.assert_array_equal(np.from_dlpack(epona.OrtValue.from_dlpack(on(X).__dlpack__(dl_device=(1, 0)))), X)
    sequence = epona.OrtValue.ortvalue_from_sequence([on(X), X])
    np.testing.assert_array_equal(sequence.numpy()[0], X)
    with pytest.raises(errors.EPFail, match="out of memory"):
        epona.OrtValue.ortvalue_from_shape_and_type([1 << 50], np.float32, "test")


@pytest.mark.parametrize("name", ["cuda", "dml", "gpu", "npu", "webgpu", "cann"])
def test_a_device_that_is_not_here(name):
    for make in (
        lambda: on(X, name),
        lambda: epona.OrtValue.ortvalue_from_shape_and_type([2], np.float32, name, 3),
        lambda: session_of().io_binding().bind_input("x", name, 0, np.float32, [2, 4], X.ctypes.data),
        lambda: session_of().create_ortvalue_from_shape_and_type([2], np.float32, name),
    ):
        with pytest.raises(RuntimeError, match=f"Can't allocate memory on the device '{name}:[03]'") as info:
            make()
        assert "To fix it: " in str(info.value) or 'use "cpu"' in str(info.value)
    if name in ("cuda", "dml"):
        with pytest.raises(RuntimeError, match="Can't allocate memory on the device"):
            onnxruntime.OrtValue.ortvalue_from_numpy(X, name)


def test_a_device_that_does_not_exist():
    with pytest.raises(RuntimeError, match="test:2 does not exist"):
        on(X, "test", 2)
    for module in (epona, onnxruntime):
        with pytest.raises(Exception, match="Unsupported device type: tpu"):
            module.OrtValue.ortvalue_from_numpy(X, "tpu")


def test_an_input_on_the_device_is_used_in_place():
    session = session_of()
    feed = {"x": on(X), "past": on(PAST)}
    for _ in range(3):
        with Copies() as copies:
            y, present = session.run(None, feed)
        assert copies.counts == {"to_host": (2, X.nbytes + PRESENT.nbytes)}
        np.testing.assert_array_equal(y, -X * W)
        np.testing.assert_array_equal(present, PRESENT)
    # The same frame must notice that the values come from elsewhere now.
    for mixed in ({"x": X, "past": feed["past"]}, {"x": feed["x"], "past": PAST}, {"x": X, "past": PAST}, feed):
        with Copies() as copies:
            y, present = session.run(None, mixed)
        ups = sum(isinstance(value, np.ndarray) for value in mixed.values())
        assert copies.counts.get("to_device", (0,))[0] == ups
        np.testing.assert_array_equal(present, PRESENT)
        np.testing.assert_array_equal(y, -X * W)


def test_the_profile_shows_no_copy(tmp_path):
    options = epona.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    session = epona.InferenceSession(STEP, options, providers=[TEST, CPU])
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", on(X))
    binding.bind_ortvalue_input("past", on(PAST))
    binding.bind_output("y", "test")
    binding.bind_output("present", "test")
    session.run_with_iobinding(binding)
    with open(session.end_profiling(), encoding="utf-8") as file:
        text = file.read()
    assert "Concat" in text and "Memcpy" not in text


@pytest.mark.parametrize("providers", [[CPU], [(TEST, {"device_id": 1}), CPU], [OTHER, CPU], [(TEST, {"ops": "Neg"}), CPU]])
def test_an_input_on_another_device_is_copied(providers):
    session = session_of(providers=providers)
    y, present = session.run(None, {"x": on(X), "past": on(PAST, "othertest", 1)})
    np.testing.assert_array_equal(y, -X * W)
    np.testing.assert_array_equal(present, PRESENT)
    values = session.run_with_ort_values(["present"], {"x": on(X, "othertest"), "past": on(PAST)})
    np.testing.assert_array_equal(values[0].numpy(), PRESENT)


def test_an_input_read_on_the_host_and_on_the_device():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
      g (float[N] x) => (float[N] a, float[N] b, float[N] c, float[N] d) {
        a = Neg(x)  b = Exp(x)  c = Identity(x)  t = Neg(a)  d = Mul(t, x) }""").SerializeToString()
    x = np.linspace(0, 1, 5, dtype=np.float32)
    expected = [-x, np.exp(x), x, x * x]
    for ops in ("Neg", "Neg,Exp", "Neg,Mul,Identity", "Exp", ""):
        session = session_of(model, {"ops": ops})
        for value in (x, on(x), on(x, "test", 1), on(x), x):
            for result, wanted in zip(session.run(None, {"x": value}), expected):
                np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_shapes_from_the_elements_of_a_value_on_the_device():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
      g (float[N] x, int64[2] s) => (float[A,B] y, int64[1,K] z) { t = Neg(x)  y = Reshape(t, s)  z = NonZero(x) }""")
    session = session_of(model.SerializeToString())
    x = np.arange(6, dtype=np.float32)
    for dims in ([2, 3], [3, 2], [-1, 1]):
        y, z = session.run(None, {"x": on(x), "s": on(np.array(dims))})
        np.testing.assert_array_equal(y, -x.reshape(dims))
        np.testing.assert_array_equal(z, np.stack(np.nonzero(x)))


def bound(session, outputs=("present",), device="test", index=0, **inputs):
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    for name in outputs:
        binding.bind_output(name, device, index)
    return binding


def test_a_decoder_keeps_its_cache_on_the_device():
    session = session_of()
    binding = session.io_binding()
    cache, expected = on(PAST), PAST
    with Copies() as copies:
        for step in range(5):
            binding.bind_cpu_input("x", X + step)
            binding.bind_ortvalue_input("past", cache)
            binding.bind_output("y")
            binding.bind_output("present", "test", 0)
            session.run_with_iobinding(binding)
            y, cache = binding.get_outputs()
            assert (y.device_name(), cache.device_name()) == ("cpu", "test")
            np.testing.assert_array_equal(y.numpy(), -(X + step) * W)
            expected = np.concatenate([expected, (X + step) * W])
    # Up goes x, down comes y: nothing of the cache.
    assert copies.counts == {"to_device": (5, 5 * X.nbytes), "to_host": (5, 5 * X.nbytes)}
    np.testing.assert_array_equal(cache.numpy(), expected)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], expected)


def test_results_of_earlier_runs_stay():
    session = session_of()
    binding = bound(session, x=on(X), past=on(PAST))
    session.run_with_iobinding(binding)
    first = binding.get_outputs()[0]
    binding.bind_ortvalue_input("x", on(X * 2))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(first.numpy(), PRESENT)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), np.concatenate([PAST, X * 2 * W]))


def test_an_output_is_written_into_a_value_on_the_device():
    session = session_of()
    target = epona.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32, "test")
    address = target.data_ptr()
    binding = bound(session, ("y",), x=on(X), past=on(PAST))
    binding.bind_ortvalue_output("present", target)
    with Copies() as copies:
        session.run_with_iobinding(binding)
        binding.synchronize_inputs()
        binding.synchronize_outputs()
    assert not copies.counts and target.data_ptr() == address
    np.testing.assert_array_equal(target.numpy(), PRESENT)
    assert binding.get_outputs()[1].data_ptr() == address
    # By address, as pointers of other libraries are given.
    binding = bound(session, ("y",))
    x, past = on(X), on(PAST)
    binding.bind_input("x", "test", 0, np.float32, [2, 4], x.data_ptr())
    binding.bind_input("past", "test", 0, np.float32, [3, 4], past.data_ptr())
    target.update_inplace(np.zeros((5, 4), np.float32))
    binding.bind_output("present", "test", 0, np.float32, [5, 4], address)
    with Copies() as copies:
        session.run_with_iobinding(binding)
    assert not copies.counts
    np.testing.assert_array_equal(target.numpy(), PRESENT)


def test_a_bound_value_of_a_wrong_shape_is_refused():
    session = session_of()
    binding = bound(session, (), x=on(X), past=on(PAST))
    binding.bind_ortvalue_output("present", on(np.zeros((4, 4), np.float32)))
    with pytest.raises(RuntimeError, match="dimensions for output: present"):
        session.run_with_iobinding(binding)
    with pytest.raises(RuntimeError, match="output data type.*'present'"):
        binding.bind_ortvalue_output("present", on(np.zeros((5, 4), np.float64)))


@pytest.mark.parametrize("providers", [[CPU], [(TEST, {"device_id": 1}), CPU], [OTHER, CPU], [(TEST, {"ops": "Mul"}), CPU]])
@pytest.mark.parametrize("written", [False, True])
def test_an_output_made_elsewhere_is_copied_to_the_device(providers, written):
    session = session_of(providers=providers)
    binding = bound(session, ("y",), x=on(X), past=epona.OrtValue.ortvalue_from_numpy(PAST))
    if written:
        target = epona.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32, "test")
        binding.bind_ortvalue_output("present", target)
    else:
        binding.bind_output("present", "test")
    for _ in range(2):
        session.run_with_iobinding(binding)
        y, present = binding.get_outputs()
        assert y.device_name() == present.device_name() == "test"
        np.testing.assert_array_equal(y.numpy(), -X * W)
        np.testing.assert_array_equal(present.numpy(), PRESENT)
    assert not written or present.data_ptr() == target.data_ptr()


def test_outputs_that_are_hard_to_leave_on_the_device():
    """An input passed through, one value twice, an alias, a constant, a value that is read further, one made on the host."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
      g (float[N,4] x) => (float[N,4] i, float[N,4] a, float[N,4] b, float[M,K] r, float[2] c, float[N,4] n, int64[2,L] z)
      <float[2] k = {1.0, 2.0}> {
        i = Identity(x)  a = Neg(x)  b = Identity(a)  r = Flatten<axis=0>(a)  c = Identity(k)  n = Exp(a)  z = NonZero(a) }""")
    a = -X
    expected = {"i": X, "a": a, "b": a, "r": a.reshape(1, -1), "c": [1, 2], "n": np.exp(a), "z": np.stack(np.nonzero(a))}
    names = list(expected)
    for level in (epona.GraphOptimizationLevel.ORT_DISABLE_ALL, epona.GraphOptimizationLevel.ORT_ENABLE_ALL):
        options = epona.SessionOptions()
        options.graph_optimization_level = level
        session = epona.InferenceSession(model.SerializeToString(), options, providers=[TEST, CPU])
        for left in ((), ("a",), ("b",), ("a", "b"), ("r",), ("i", "c", "n", "z"), tuple(names)):
            for value in (on(X), epona.OrtValue.ortvalue_from_numpy(X)):
                binding = session.io_binding()
                binding.bind_ortvalue_input("x", value)
                for name in names:
                    binding.bind_output(name, "test" if name in left else "cpu")
                session.run_with_iobinding(binding)
                for name, result in zip(names, binding.get_outputs()):
                    assert result.device_name() == ("test" if name in left else "cpu"), name
                    np.testing.assert_allclose(result.numpy(), expected[name], rtol=1e-6, err_msg=name)


def test_output_over_its_input_on_the_device():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N,4] x) => (float[N,4] y, float[N,4] z) { y = Neg(x) z = Exp(x) }'
    )
    session = session_of(model.SerializeToString())
    value = on(X)
    binding = bound(session, ("z",), x=value)
    binding.bind_ortvalue_output("y", value)
    with Copies() as copies:
        session.run_with_iobinding(binding)
    assert copies.counts == {"within": (1, X.nbytes)}
    np.testing.assert_array_equal(value.numpy(), -X)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), np.exp(X), rtol=1e-6)


def test_values_and_sessions_outlive_each_other():
    before = used()
    session = session_of()
    binding = bound(session, x=on(X), past=on(PAST))
    session.run_with_iobinding(binding)
    (value,) = binding.get_outputs()
    del session, binding
    gc.collect()
    np.testing.assert_array_equal(value.numpy(), PRESENT)
    second = session_of()
    y, _ = second.run(None, {"x": X, "past": value})
    np.testing.assert_array_equal(y, -X * W)
    del value
    second.run(None, {"x": X, "past": PAST})
    del second
    assert used() == before


def test_the_memory_limit_counts_what_is_left_on_the_device():
    session = session_of(options={"gpu_mem_limit": 4096})
    kept = []
    with pytest.warns(UserWarning, match="(?s)left.*out of memory on test:0.*gpu_mem_limit=4096"):
        for _ in range(80):
            binding = bound(session, x=on(X), past=on(PAST))
            session.run_with_iobinding(binding)
            kept += binding.get_outputs()
    assert session.get_providers() == [CPU] and len(kept) == 80
    for value in kept:
        assert value.device_name() == "test"
        np.testing.assert_array_equal(value.numpy(), PRESENT)


def test_values_of_a_session_count_in_its_limit():
    session = session_of(options={"gpu_mem_limit": 4096})
    value = session.create_ortvalue_from_shape_and_type([500], np.float32, "test")
    with pytest.raises(errors.EPFail, match="out of memory on test:0.*gpu_mem_limit=4096"):
        session.create_ortvalue_from_shape_and_type([600], np.float32, "test")
    del value
    gc.collect()
    session.create_ortvalue_from_shape_and_type([600], np.float32, "test")
    session.create_ortvalue_from_shape_and_type([6000], np.float32, "test", 1)  # another device


def test_out_of_memory_without_fallback():
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Neg(x) }')
    session = session_of(model.SerializeToString(), {"gpu_mem_limit": 64})
    session.disable_fallback()
    binding = bound(session, ("y",), x=epona.OrtValue.ortvalue_from_numpy(np.zeros(1000, np.float32)))
    with pytest.raises(RuntimeError, match="out of memory on test:0"):
        session.run_with_iobinding(binding)
    assert session.get_providers() == [TEST, CPU]


def test_a_provider_that_fails_hands_over_values_on_its_device():
    session = session_of(options={"fail": "run", "fail_op": "Neg", "good_runs": 1})
    binding = bound(session, ("y", "present"), x=on(X), past=on(PAST))
    session.run_with_iobinding(binding)
    with pytest.warns(UserWarning, match="failed while running"):
        session.run_with_iobinding(binding)
    y, present = binding.get_outputs()
    assert y.device_name() == "test"
    np.testing.assert_array_equal(y.numpy(), -X * W)
    np.testing.assert_array_equal(present.numpy(), PRESENT)


def test_outputs_bound_to_a_device_that_is_not_here():
    session = epona.InferenceSession(STEP)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("past", PAST)
    with pytest.warns(UserWarning, match="(?s)'y' is left in host memory.*cuda:0.*To fix it"):
        binding.bind_output("y", "cuda")
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].device_name() == "cpu"
    session.disable_fallback()
    with pytest.raises(RuntimeError, match="(?s)cuda:0.*To fix it"):
        binding.bind_output("y", "cuda")


def test_results_of_run_with_ortvaluevector_are_left_where_asked():
    session = session_of()
    device = epona.OrtDevice.make("test", 0)._get_c_device()
    host = epona.OrtDevice.make("cpu", 0)._get_c_device()
    fetches = errors.OrtValueVector()
    feeds = [on(X)._get_c_value(), on(PAST)._get_c_value()]
    session.run_with_ortvaluevector(None, ["x", "past"], feeds, ["present", "y"], fetches, [device, host])
    assert [value.device_name() for value in fetches] == ["test", "cpu"]
    np.testing.assert_array_equal(fetches[0].numpy(), PRESENT)


def test_sessions_say_where_they_read_and_write():
    def memories(infos):
        return [(info.name, info.device_id) for info in infos]

    session = session_of(options={"device_id": 1})
    assert memories(session.get_input_memory_infos()) == memories(session.get_output_memory_infos()) == [("Test", 1)] * 2
    session = session_of(options={"ops": "Concat"})
    assert memories(session.get_input_memory_infos()) == [("Cpu", 0), ("Test", 0)]
    assert memories(session.get_output_memory_infos()) == [("Cpu", 0), ("Test", 0)]


def test_subgraphs_read_values_from_outside_on_the_host():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
      g (bool c, float[N] x) => (float[N] y) {
        y = If(c) <then_branch = t () => (float[N] a) { a = Neg(x) }, else_branch = e () => (float[N] b) { b = Exp(x) }> }""")
    session = session_of(model.SerializeToString())
    x = np.linspace(0, 1, 4, dtype=np.float32)
    for flag in (True, False):
        binding = bound(session, ("y",), c=on(np.array(flag)), x=on(x))
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.get_outputs()[0].numpy(), -x if flag else np.exp(x), rtol=1e-6)


def test_threads_share_a_session_and_its_device():
    session, wrong = session_of(), []
    x, past = on(X), on(PAST)

    def work(n):
        for i in range(30):
            rows = 1 + (n + i) % 3
            feed = X[:1].repeat(rows, 0) + i
            binding = bound(session, x=on(feed) if i % 2 else epona.OrtValue.ortvalue_from_numpy(feed), past=past)
            session.run_with_iobinding(binding)
            if not np.array_equal(binding.get_outputs()[0].numpy(), np.concatenate([PAST, feed * W])):
                wrong.append((n, i))
            y, _ = session.run(None, {"x": x, "past": PAST})
            if not np.array_equal(y, -X * W):
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
