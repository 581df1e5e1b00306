"""IOBinding against onnxruntime."""

import gc
import threading

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import epona

ADD = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] a, float[2] b) => (float[N,2] s, float[N,2] d) { s = Add(a, b)  d = Sub(a, b) }"""
A = np.arange(6, dtype=np.float32).reshape(3, 2)
B = np.array([10, 20], np.float32)
MODEL = parser.parse_model(ADD).SerializeToString()


@pytest.fixture(params=[epona, onnxruntime], ids=["epona", "onnxruntime"])
def module(request):
    return request.param


@pytest.fixture
def session(module):
    return module.InferenceSession(MODEL, providers=["CPUExecutionProvider"])


@pytest.fixture
def ours():
    return epona.InferenceSession(MODEL)


def test_results_in_the_order_bound(session):
    binding = session.io_binding()
    binding.bind_cpu_input("a", A)
    binding.bind_cpu_input("b", B)
    binding.bind_output("d")
    binding.bind_output("s", "cpu")
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    d, s = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(d, A - B)
    np.testing.assert_array_equal(s, A + B)
    values = binding.get_outputs()
    assert [value.shape() for value in values] == [[3, 2], [3, 2]] and values[0].device_name() == "cpu"
    vector = binding.get_outputs_as_ortvaluevector()
    assert len(vector) == 2 and [v.numpy().tolist() for v in vector] == [d.tolist(), s.tolist()]


def test_bound_memory_is_written(module, session):
    raw = np.zeros((3, 2), np.float32)
    value = module.OrtValue.ortvalue_from_numpy(np.zeros((3, 2), np.float32))
    binding = session.io_binding()
    binding.bind_ortvalue_input("a", module.OrtValue.ortvalue_from_numpy(A))
    binding.bind_input("b", "cpu", 0, np.float32, [2], B.ctypes.data)
    binding.bind_output("s", "cpu", 0, np.float32, [3, 2], raw.ctypes.data)
    binding.bind_ortvalue_output("d", value)
    address = value.data_ptr()
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(raw, A + B)
    np.testing.assert_array_equal(value.numpy(), A - B)
    assert value.data_ptr() == address == binding.get_outputs()[1].data_ptr()


def test_inputs_are_read_at_every_run(session):
    a = A.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("a", a)
    binding.bind_cpu_input("b", B)
    binding.bind_output("s")
    session.run_with_iobinding(binding)
    a[:] = 1
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.ones_like(A) + B)


def test_rebinding_replaces_and_clearing_forgets(session):
    binding = session.io_binding()
    binding.bind_cpu_input("a", A)
    binding.bind_cpu_input("a", A * 2)
    binding.bind_cpu_input("b", B)
    binding.bind_output("s")
    binding.bind_output("s")
    session.run_with_iobinding(binding)
    (result,) = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(result, A * 2 + B)
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError, match="At least one output should be requested"):
        session.run_with_iobinding(binding)
    binding.bind_output("s")
    binding.clear_binding_inputs()
    with pytest.raises(RuntimeError, match="Missing Input: "):
        session.run_with_iobinding(binding)


def test_output_with_a_shape_that_changes(ours):
    """onnxruntime fails at the second run."""
    binding = ours.io_binding()
    binding.bind_cpu_input("b", B)
    binding.bind_output("s")
    seen = []
    for n in (3, 5, 0, 1):
        a = np.full((n, 2), n, np.float32)
        binding.bind_cpu_input("a", a)
        ours.run_with_iobinding(binding)
        seen.append((binding.get_outputs()[0], a + B))
    for value, expected in seen:
        np.testing.assert_array_equal(value.numpy(), expected)


def test_what_is_bound_is_kept_alive(ours):
    binding = ours.io_binding()
    binding.bind_cpu_input("a", np.full((1000, 2), 3, np.float32))
    binding.bind_ortvalue_input("b", epona.OrtValue.ortvalue_from_numpy(np.array([1, 2], np.float32)))
    binding.bind_ortvalue_output("s", epona.OrtValue.ortvalue_from_shape_and_type([1000, 2], np.float32))
    gc.collect()
    [np.full((1000, 2), 9, np.float32) for _ in range(20)]
    ours.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), np.tile(np.array([4, 5], "f"), (1000, 1)))


def test_output_in_the_memory_of_an_input(ours):
    """As a decoder's cache: the result must not depend on the order of writes."""
    shared = np.arange(2000, dtype=np.float32).reshape(1000, 2)
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N,2] a) => (float[N,2] s, float[N,2] t) '
        "{ s = Add(a, a)  t = Mul(a, a) }"
    )
    session = epona.InferenceSession(model.SerializeToString())
    binding = session.io_binding()
    before = shared.copy()
    binding.bind_cpu_input("a", shared)
    binding.bind_output("s", "cpu", 0, np.float32, shared.shape, shared.ctypes.data)
    binding.bind_output("t")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(shared, before + before)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], before * before)


def test_names_are_checked_when_bound(session):
    binding = session.io_binding()
    with pytest.raises(RuntimeError, match="zz"):
        binding.bind_cpu_input("zz", A)


def test_types_and_ranks_are_checked_when_bound(ours):
    """onnxruntime accepts these and fails in the run."""
    binding = ours.io_binding()
    for array, text in ((A.astype(np.float64), "'a'"), (A[0], "rank for input: a"), (A[:, :1], "dimensions for input: a")):
        with pytest.raises(RuntimeError, match=text):
            binding.bind_cpu_input("a", array)
    with pytest.raises(RuntimeError, match="numpy|python object"):
        binding.bind_cpu_input("a", [[1, 2]])
    with pytest.raises(RuntimeError, match="zz.*'s', 'd'"):
        binding.bind_output("zz")
    for shape, element in (([3, 2], np.float64), ([6], np.float32)):
        with pytest.raises(RuntimeError, match="output.*s"):
            binding.bind_ortvalue_output("s", epona.OrtValue.ortvalue_from_shape_and_type(shape, element))
    with pytest.raises(ValueError, match="element_type"):
        binding.bind_output("s", buffer_ptr=A.ctypes.data)
    with pytest.raises(RuntimeError, match="null"):
        binding.bind_output("s", "cpu", 0, np.float32, [3, 2], 0)


def test_bound_output_of_a_wrong_shape(session, module):
    binding = session.io_binding()
    binding.bind_cpu_input("a", A)
    binding.bind_cpu_input("b", B)
    binding.bind_ortvalue_output("s", module.OrtValue.ortvalue_from_numpy(np.zeros((4, 2), np.float32)))
    with pytest.raises(RuntimeError, match="Error in execution: .*s"):
        session.run_with_iobinding(binding)


def test_binding_of_another_session(module, session):
    binding = module.InferenceSession(MODEL, providers=["CPUExecutionProvider"]).io_binding()
    with pytest.raises(ValueError, match="IOBinding must be used with the session that created it."):
        session.run_with_iobinding(binding)


def test_a_device_that_is_not_here(ours):
    binding = ours.io_binding()
    binding.bind_cpu_input("a", A)
    binding.bind_cpu_input("b", B)
    with pytest.warns(UserWarning, match="cuda:0"):
        binding.bind_output("s", "cuda")
    ours.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], A + B)
    with pytest.raises(RuntimeError, match="cuda:0"):
        binding.bind_input("a", "cuda", 0, np.float32, [3, 2], A.ctypes.data)


def test_strings_and_sequences_are_bound():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (string[N] x, float[2] f) => (string[N] y, seq(float[2]) q) '
        "{ y = Identity(x)  q = SequenceConstruct(f, f) }"
    )
    session = epona.InferenceSession(model.SerializeToString())
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.array(["a\0b", "c"]))
    binding.bind_cpu_input("f", B)
    target = epona.OrtValue.ortvalue_from_shape_and_type([2], np.object_)
    binding.bind_ortvalue_output("y", target)
    binding.bind_output("q")
    session.run_with_iobinding(binding)
    assert target.numpy().tolist() == ["a\0b", "c"]
    assert binding.get_outputs()[1].data_type() == "seq(tensor(float))"
    assert [item.tolist() for item in binding.copy_outputs_to_cpu()[1]] == [B.tolist()] * 2


def test_a_binding_for_each_thread(ours):
    wrong = []

    def work(n):
        out = np.zeros((4, 2), np.float32)
        binding = ours.io_binding()
        binding.bind_cpu_input("b", B)
        binding.bind_output("s", "cpu", 0, np.float32, out.shape, out.ctypes.data)
        for i in range(100):
            a = np.full((4, 2), n * 100 + i, np.float32)
            binding.bind_cpu_input("a", a)
            ours.run_with_iobinding(binding)
            if not np.array_equal(out, a + B):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
