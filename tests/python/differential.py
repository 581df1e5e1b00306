"""Calls that test_differential.py runs on onnxruntime and on Epona. SAME gives the same on both; DIFFERENT differs on
purpose, and says why: scripts/compare_api.py puts these into docs/compatibility.md."""

import contextlib
import dataclasses
import io
import pathlib
import tempfile
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, parser

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
ADD = HEAD + "g (float[N,2] a, float[2] b) => (float[N,2] s) { s = Add(a, b) }"
A = np.array([[1, 2], [3, 4]], np.float32)
B = np.array([10, 20], np.float32)
FEED = {"a": A, "b": B}
CPU = ["CPUExecutionProvider"]


@dataclasses.dataclass
class Row:
    """One call. `expect` is what Epona gives in a DIFFERENT row: a class of exception by name, or a value."""

    title: str
    call: Callable[[Any], Any]
    theirs: str = ""
    ours: str = ""
    why: str = ""
    expect: Any = None


def model(text: str) -> bytes:
    return parser.parse_model(text).SerializeToString()


def session(module: Any, text: str = ADD, **kwargs: Any) -> Any:
    return module.InferenceSession(model(text), **{"providers": CPU, **kwargs})


def run(feed: Any, names: Any = None, text: str = ADD) -> Callable[[Any], Any]:
    return lambda module: session(module, text).run(names, feed)


def load(source: Any, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda module: [
        value.name for value in module.InferenceSession(source, **{"providers": CPU, **kwargs}).get_inputs()
    ]


def loads(text: str) -> Callable[[Any], Any]:
    return lambda module: load(model(text))(module)


def edited(change: Callable[[onnx.ModelProto], Any], text: str = ADD) -> Callable[[Any], Any]:
    def call(module: Any) -> Any:
        proto = parser.parse_model(text)
        change(proto)
        return load(proto.SerializeToString())(module)

    return call


def providers(*arguments: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Active providers; what onnxruntime prints about a fallback is dropped."""

    def call(module: Any) -> Any:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return module.InferenceSession(model(ADD), None, *arguments, **kwargs).get_providers()

    return call


def options(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda module: change(module.SessionOptions())


def set_option(name: str, value: Any) -> Callable[[Any], Any]:
    return options(lambda so: setattr(so, name, value))


def with_config(key: str, value: str, **kwargs: Any) -> Callable[[Any], Any]:
    def call(module: Any) -> Any:
        so = module.SessionOptions()
        so.add_session_config_entry(key, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return module.InferenceSession(model(ADD), so, **kwargs).get_providers()

    return call


def in_file(data: bytes | None) -> Callable[[Any], Any]:
    def call(module: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.onnx"
            if data is not None:
                path.write_bytes(data)
            return load(path)(module)

    return call


def folder(module: Any) -> Any:
    with tempfile.TemporaryDirectory() as name:
        return load(name)(module)


def bound(prepare: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def call(module: Any) -> Any:
        made = session(module)
        binding = made.io_binding()
        prepare(module, binding)
        made.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()

    return call


def bind(module: Any, binding: Any, a: Any = A, b: Any = B, output: str = "s") -> None:
    binding.bind_cpu_input("a", a)
    if b is not None:
        binding.bind_cpu_input("b", b)
    if output:
        binding.bind_output(output)


def asynchronously(names: Any, feed: Any) -> Callable[[Any], Any]:
    def call(module: Any) -> Any:
        done, got = threading.Event(), []

        def callback(results: Any, user_data: Any, error: str) -> None:
            got.append((results, user_data, error.split(":")[0]))
            done.set()

        session(module).run_async(names, feed, callback, 5)
        assert done.wait(30)
        return got[0]

    return call


def terminated(module: Any) -> Any:
    run_options = module.RunOptions()
    run_options.terminate = True
    return session(module).run(None, FEED, run_options)


def overridable(module: Any) -> Any:
    proto = parser.parse_model(ADD)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(B, "b"))
    made = module.InferenceSession(proto.SerializeToString(), providers=CPU)
    names = [v.name for v in made.get_inputs()], [v.name for v in made.get_overridable_initializers()]
    return names, made.run(None, {"a": A}), made.run(None, {"a": A, "b": B * 2})


def external(location: str, **entries: str) -> Callable[[Any], Any]:
    def call(module: Any) -> Any:
        with tempfile.TemporaryDirectory() as name:
            home = pathlib.Path(name) / "home"
            home.mkdir()
            (pathlib.Path(name) / "outside.bin").write_bytes(bytes(8))
            (home / "w.bin").write_bytes(bytes(8))
            proto = parser.parse_model(HEAD + "g (float[N,2] a) => (float[N,2] s) { s = Add(a, w) }")
            tensor = proto.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
            for key, value in {"location": location, **entries}.items():
                tensor.external_data.add(key=key, value=value)
            path = home / "m.onnx"
            path.write_bytes(proto.SerializeToString())
            return module.InferenceSession(path, providers=CPU).run(None, {"a": A})

    return call


UNARY = HEAD + "g (float[2] x) => (float[2] y) {{ y = {} }}"
SEQUENCE = HEAD + "g (seq(float[N]) q, int64 i) => (float[M] y) { y = SequenceAt(q, i) }"
STRINGS = HEAD + "g (string[N] x) => (string[N] y) { y = Identity(x) }"
BIG_ENDIAN = {"a": A.astype(">f4"), "b": B}


def typed(kind: str) -> str:
    return f'<ir_version: 11, opset_import: ["" : 23]> g ({kind}[2] x) => ({kind}[2] y) {{ y = Identity(x) }}'


def ort_value(module: Any, array: np.ndarray) -> Any:
    return module.OrtValue.ortvalue_from_numpy(array)


SAME = [
    # providers
    Row("providers=None", providers(None)),
    Row("providers=[]", providers([])),
    Row("providers omitted", providers()),
    Row("providers as a tuple", providers(("CPUExecutionProvider",))),
    Row("a known provider that is not there", providers(["CUDAExecutionProvider", "CPUExecutionProvider"])),
    Row("the same, known provider alone", providers(["CUDAExecutionProvider"])),
    Row("a provider twice", providers(CPU * 2)),
    Row("(name, {}) pairs", providers([("CPUExecutionProvider", {})])),
    Row("names and provider_options", providers(CPU, [{}])),
    Row("unknown provider, enable_fallback=0", providers(["FooExecutionProvider"], enable_fallback=0)),
    Row("provider_options of another length, enable_fallback=0", providers(CPU, [{}, {}], enable_fallback=0)),
    Row("provider_options={}, enable_fallback=0", providers(CPU, {}, enable_fallback=0)),
    Row("provider_options=['x'], enable_fallback=0", providers(CPU, ["x"], enable_fallback=0)),
    Row("pairs and provider_options, enable_fallback=0", providers([("CPUExecutionProvider", {})], [{}], enable_fallback=0)),
    Row("providers=[1], enable_fallback=0", providers([1], enable_fallback=0)),
    Row("providers=None with provider_options", providers(None, [{}])),
    Row("unknown keywords of the constructor", providers(CPU, no_such_keyword=1)),
    Row("disabled_optimizers of unknown names", providers(CPU, disabled_optimizers=["NoSuchPass"])),
    Row("add_provider of an unknown name", options(lambda so: so.add_provider("FooExecutionProvider", {}))),
    Row("add_provider with a number as a value", options(lambda so: so.add_provider("CPUExecutionProvider", {"a": 1}))),
    Row("add_provider_for_devices([])", options(lambda so: so.add_provider_for_devices([], {}))),
    Row("disable_cpu_ep_fallback with nothing else", with_config("session.disable_cpu_ep_fallback", "1")),
    Row("disable_cpu_ep_fallback with the CPU named", with_config("session.disable_cpu_ep_fallback", "1", providers=CPU)),
    Row("disable_cpu_ep_fallback with CUDA missing", with_config("session.disable_cpu_ep_fallback", "1", providers=["CUDAExecutionProvider"])),
    # run()
    Row("run(None)", run(FEED)),
    Row("run([])", run(FEED, [])),
    Row("an output twice", run(FEED, ["s", "s"])),
    Row("unknown output", run(FEED, ["zzz"])),
    Row("output name ''", run(FEED, [""])),
    Row("output_names as a string", run(FEED, "s")),
    Row("output_names=[1]", run(FEED, [1])),
    Row("an input missing", run({"a": A})),
    Row("no inputs", run({})),
    Row("a wrong name", run({"a": A, "c": B})),
    Row("an input too many", run({**FEED, "zz": B})),
    Row("input_feed=None", run(None)),
    Row("float64 for float", run({"a": A.astype("f8"), "b": B})),
    Row("int32 for float", run({"a": A.astype("i4"), "b": B})),
    Row("wrong rank", run({"a": A[0], "b": B})),
    Row("wrong fixed dims", run({"a": A[:, :1], "b": B})),
    Row("a node that fails", run({"x": np.ones((2, 3), "f"), "y": np.ones(2, "f")}, None, HEAD + "g (float[N,M] x, float[K] y) => (float[N,M] z) { z = Add(x, y) }")),
    Row("nested lists", run({"a": A.tolist(), "b": B.tolist()})),
    Row("None for a tensor", run({"a": A, "b": None})),
    Row("Fortran order", run({"a": np.asfortranarray(A), "b": B})),
    Row("negative strides", run({"a": A[::-1, ::-1], "b": B[::-1]})),
    Row("broadcast array of stride 0", run({"a": np.broadcast_to(B, (3, 2)), "b": B})),
    Row("an object array of numbers", run({"a": A.astype(object), "b": B})),
    Row("bool for float", run({"a": A > 2, "b": B})),
    Row("zero rows", run({"a": A[:0], "b": B})),
    Row("OrtValue beside an array", lambda m: session(m).run(None, {"a": ort_value(m, A), "b": B})),
    Row("run_with_ort_values", lambda m: [v.numpy() for v in session(m).run_with_ort_values(["s"], {"a": ort_value(m, A), "b": ort_value(m, B)})]),
    Row("run_with_ort_values of an array", lambda m: session(m).run_with_ort_values(["s"], {"a": A, "b": B})),
    Row("RunOptions.terminate", terminated),
    Row("an initialiser that is an input", overridable),
    Row("a scalar result", run({"x": np.ones(2, "f")}, None, HEAD + "g (float[2] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }")),
    Row("a sequence", run({"q": [B, A[0]], "i": np.array(1)}, None, SEQUENCE)),
    Row("a sequence of another element type", run({"q": [B.astype("i4")], "i": np.array(0)}, None, SEQUENCE)),
    Row("an array for a sequence", run({"q": B, "i": np.array(0)}, None, SEQUENCE)),
    Row("strings of dtype object", run({"x": np.array(["a", "é", ""], object)}, None, STRINGS)),
    Row("strings of dtype U", run({"x": np.array(["ab", "c", "é"])}, None, STRINGS)),
    Row("None among strings", run({"x": np.array(["a", None], object)}, None, STRINGS)),
    Row("float64", run({"x": np.array([1.5, 2])}, None, typed("double"))),
    Row("bool", run({"x": np.array([True, False])}, None, typed("bool"))),
    Row("float16", run({"x": np.array([1.5, 2], "f2")}, None, typed("float16"))),
    Row("uint64", run({"x": np.array([1, 2**63], "u8")}, None, typed("uint64"))),
    Row("run_async", asynchronously(["s"], FEED)),
    Row("run_async of an unknown output", asynchronously(["zz"], FEED)),
    # values
    Row("OrtValue on cuda", lambda m: m.OrtValue.ortvalue_from_numpy(A, "cuda", 0)),
    Row("OrtValue on tpu", lambda m: m.OrtValue.ortvalue_from_numpy(A, "tpu", 0)),
    Row("update_inplace of another size", lambda m: ort_value(m, A.copy()).update_inplace(B)),
    # IO binding
    Row("bound run", bound(bind)),
    Row("binding an unknown input", bound(lambda m, b: b.bind_cpu_input("zz", A))),
    Row("binding an unknown output", bound(lambda m, b: bind(m, b, output="zz"))),
    Row("binding another type", bound(lambda m, b: bind(m, b, a=A.astype("f8")))),
    Row("binding another rank", bound(lambda m, b: bind(m, b, a=A[0]))),
    Row("an input not bound", bound(lambda m, b: bind(m, b, b=None))),
    Row("no output bound", bound(lambda m, b: bind(m, b, output=""))),
    Row("a buffer without a shape", bound(lambda m, b: b.bind_output("s", "cpu", 0, None, None, 64))),
    Row("a list bound", bound(lambda m, b: b.bind_cpu_input("a", [[1, 2]]))),
    # loading
    Row("a file that is missing", in_file(None)),
    Row("a folder", folder),
    Row("a file of garbage", in_file(b"\x08\x08garbage")),
    Row("a truncated file", in_file(model(ADD)[:-9])),
    Row("an empty file", in_file(b"")),
    Row("a file", in_file(model(ADD))),
    Row("bytes of garbage", load(b"\x08\x08garbage")),
    Row("no bytes", load(b"")),
    *[Row(f"{type(bad).__name__} as a model", load(bad)) for bad in (None, 3, bytearray(b"x"), memoryview(b"x"), [])],
    Row("a ModelProto as a model", lambda m: m.InferenceSession(parser.parse_model(ADD))),
    *[Row(f"IR version {n}", edited(lambda p, n=n: setattr(p, "ir_version", n))) for n in (0, 3, 14, 15)],
    Row("no IR version", edited(lambda p: p.ClearField("ir_version"))),
    Row("no opset", edited(lambda p: p.ClearField("opset_import"))),
    *[Row(f"opset {n}", edited(lambda p, n=n: setattr(p.opset_import[0], "version", n))) for n in (0, 7, 22, 99)],
    Row("unknown operator", loads(UNARY.format("Bogus(x)"))),
    Row("domain without import", loads(UNARY.format("foo.Bogus(x)"))),
    Row("too few inputs", loads(UNARY.format("Add(x)"))),
    Row("attribute missing", loads(UNARY.format("Cast(x)"))),
    Row("unknown attribute", loads(UNARY.format("Relu<foo = 1>(x)"))),
    Row("attribute of another type", loads(UNARY.format("Softmax<axis = 1.0>(x)"))),
    Row("string into Relu", loads(HEAD + "g (string[2] x) => (string[2] y) { y = Relu(x) }")),
    Row("unknown domain with import", loads('<ir_version: 8, opset_import: ["" : 17, "foo" : 1]> g (float[2] x) => (float[2] y) { y = foo.Bogus(x) }')),
    Row("a cycle", loads(HEAD + "g (float[2] x) => (float[2] y) { y = Add(x, z)  z = Neg(y) }")),
    Row("a name defined twice", loads(HEAD + "g (float[2] x) => (float[2] y) { y = Neg(x)  y = Abs(x) }")),
    Row("an output that is not there", loads(HEAD + "g (float[2] x) => (float[2] z) { y = Neg(x) }")),
    Row("output declared of another type", loads(HEAD + "g (float[2] x) => (int32[2] y) { y = Neg(x) }")),
    Row("an input that nobody defines", loads(UNARY.format("Add(x, q)"))),
    Row("nodes in any order", loads(HEAD + "g (float[2] x) => (float[2] y) { y = Neg(z)  z = Abs(x) }")),
    Row("an input as an output", loads(HEAD + "g (float[2] x) => (float[2] x) { }")),
    Row("output declared with another dim", run({"x": np.ones(3, "f")}, None, HEAD + "g (float[3] x) => (float[4] y) { y = Neg(x) }")),
    Row("initialiser too short", edited(lambda p: p.graph.initializer.append(helper.make_tensor("w", 1, [2], b"\0" * 8, raw=True)) or p.graph.initializer[0].dims.append(2))),
    Row("initialiser of type 77", edited(lambda p: p.graph.initializer.add(name="w", dims=[1], data_type=77, raw_data=b"\0" * 4))),
    Row("external data", external("w.bin")),
    Row("external data outside", external("../outside.bin")),
    Row("external data that is missing", external("missing.bin")),
    Row("external data by absolute path", external("/etc/hostname")),
    Row("external data location ''", external("")),
    Row("external data beyond the end", external("w.bin", offset="4096")),
    Row("external data of another length", external("w.bin", length="4")),
    Row("external data offset 'x'", external("w.bin", offset="x")),
    Row("external data in memory marker", external("*/_ORT_MEM_ADDR_/*")),
    # options
    Row("an option that does not exist", set_option("no_such_option", 1)),
    Row("a string for log_severity_level", set_option("log_severity_level", "x")),
    Row("intra_op_num_threads=-1", set_option("intra_op_num_threads", -1)),
    Row("an empty configuration key", options(lambda so: so.add_session_config_entry("", "1"))),
    Row("a configuration key of 1025", options(lambda so: so.add_session_config_entry("k" * 1025, "1"))),
    Row("an unknown configuration key", with_config("some.key", "1")),
    Row("get of an unknown key", options(lambda so: so.get_session_config_entry("nope"))),
    Row("log severity 9", lambda m: m.set_default_logger_severity(9)),
    Row("log severity -1", lambda m: m.set_default_logger_severity(-1)),
    Row("session log severity 7", lambda m: session(m, sess_options=_severity(m, 7))),
    Row("pickling a session", lambda m: __import__("pickle").dumps(session(m))),
]


def _severity(module: Any, level: int) -> Any:
    so = module.SessionOptions()
    so.log_severity_level = level
    return so


def _optimised(module: Any, path: str) -> Any:
    so = module.SessionOptions()
    so.optimized_model_filepath = path
    return so


DIFFERENT = [
    Row(
        "`providers='CPUExecutionProvider'` (a string), enable_fallback=0",
        providers("CPUExecutionProvider", enable_fallback=0),
        "each letter is a provider: RuntimeError",
        "a list of one",
        "what the caller meant",
        CPU,
    ),
    Row(
        "an unknown provider name",
        providers(["FooExecutionProvider", "CPUExecutionProvider"]),
        "prints a box on stdout and runs on the CPU",
        "RuntimeError with the nearest name",
        "a misspelt name is never what was meant",
        "RuntimeError",
    ),
    Row(
        "a malformed list of providers",
        providers([1]),
        "prints a box on stdout and runs on the CPU",
        "ValueError",
        "a mistake in the program must not go unseen",
        "ValueError",
    ),
    Row(
        "a big-endian array",
        run(BIG_ENDIAN),
        "garbage, silently",
        "the right result",
        "numpy says what the byte order is",
        [A + B],
    ),
    Row(
        "a Python number for a scalar input",
        run({"x": 2.5}, None, HEAD + "g (float x) => (float y) { y = Neg(x) }"),
        "RuntimeError",
        "taken as the model's type",
        "there is one meaning that it can have",
        [np.array(-2.5, np.float32)],
    ),
    Row(
        "strings with NUL in arrays of dtype U",
        run({"x": np.array(["a\0b"])}, None, STRINGS),
        "cut at the NUL",
        "whole",
        "they are valid strings",
        [np.array(["a\0b"], object)],
    ),
    Row(
        "bfloat16 results",
        lambda m: str(session(m, '<ir_version: 11, opset_import: ["" : 23]> g (float[2] x) => (bfloat16[2] y) { y = Cast<to = 16>(x) }').run(None, {"x": B})[0].dtype),
        "RuntimeError: no numpy type",
        "an array of ml_dtypes.bfloat16",
        "ml_dtypes has the type",
        "bfloat16",
    ),
    Row(
        "`update_inplace` with another type of that size",
        lambda m: ort_value(m, B.copy()).update_inplace(np.zeros(2, np.int32)),
        "the bytes are copied",
        "RuntimeError",
        "the numbers would be others",
        "RuntimeError",
    ),
    Row(
        "an OrtValue of strings",
        lambda m: ort_value(m, np.array(["a", "b"])).numpy(),
        "RuntimeError",
        "a tensor of strings",
        "models take them",
        np.array(["a", "b"], object),
    ),
    Row(
        "`numpy()` of an OrtValue that holds a sequence",
        lambda m: session(m, HEAD + "g (float[2] x) => (seq(float[2]) q) { q = SequenceConstruct(x) }").run_with_ort_values(["q"], {"x": ort_value(m, B)})[0].numpy(),
        "RuntimeError",
        "a list of arrays",
        "run() gives the same",
        [B],
    ),
    Row(
        "a bound output whose shape changes between runs",
        lambda m: _rerun(m),
        "RuntimeError in the second run",
        "new memory for each run",
        "results of earlier runs stay as they are, too",
        [A + B],
    ),
    Row(
        "an integer for an enumeration, as in `graph_optimization_level = 1`",
        set_option("graph_optimization_level", 1),
        "TypeError",
        "accepted",
        "the values are documented as numbers",
        None,
    ),
    Row(
        "an axis out of range, when the model is loaded",
        loads(UNARY.format("Softmax<axis = 5>(x)")),
        "Fail",
        "Fail in the first run",
        "shape inference is lenient: a node that never runs does no harm",
        ["x"],
    ),
    Row(
        "an initialiser with a negative dimension that no node reads",
        edited(lambda p: p.graph.initializer.add(name="w", dims=[-1], data_type=1, raw_data=b"\0" * 4)),
        "accepted",
        "Fail",
        "every tensor of a file is checked",
        "Fail",
    ),
    Row(
        "an optimised model that cannot be written",
        lambda m: session(m, sess_options=_optimised(m, "/no/such/folder/x.onnx")),
        "InvalidArgument 'SystemError : 2'",
        "InvalidArgument with the prefix, the path and the cause",
        "the message says what to do",
        "InvalidArgument",
    ),
    Row(
        "a value for an initialiser that has another shape (add_initializer)",
        lambda m: _initializer(m),
        "accepted; a kernel fails later",
        "InvalidArgument when the model is loaded",
        "the message can name the initialiser",
        "InvalidArgument",
    ),
]


def _rerun(module: Any) -> Any:
    made = session(module)
    binding = made.io_binding()
    bind(module, binding, a=np.zeros((5, 2), np.float32))
    made.run_with_iobinding(binding)
    binding.bind_cpu_input("a", A)
    made.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def _initializer(module: Any) -> Any:
    so = module.SessionOptions()
    value = ort_value(module, np.zeros(3, np.float32))
    so.add_initializer("w", value)
    text = HEAD + "g (float[N,2] a) => (float[N,2] s) <float[2] w = {1,2}> { s = Add(a, w) }"
    return [v.name for v in module.InferenceSession(model(text), so).get_inputs()]
