"""Options, profiling, initialisers, devices, adapters and the rest of the module, against onnxruntime."""

import gc
import json
import threading

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import epona
from epona.capi import onnxruntime_pybind11_state as errors

PAIR = (epona, onnxruntime)
both = pytest.mark.parametrize("module", PAIR, ids=["epona", "onnxruntime"])
WEIGHTED = '<ir_version: 10, opset_import: ["" : 20]> g (float[N,2] a) => (float[N,2] s) <float[2] w = {1,2}> { s = Add(a, w) }'
MODEL = parser.parse_model(WEIGHTED).SerializeToString()
A = np.zeros((1, 2), np.float32)


def test_enumerations_are_numbers():
    for name in (
        "GraphOptimizationLevel ExecutionMode ExecutionOrder OrtAllocatorType OrtMemType OrtSparseFormat"
        " OrtMemoryInfoDeviceType OrtDeviceMemoryType OrtHardwareDeviceType OrtExecutionProviderDevicePolicy"
        " OrtCompileApiFlags OrtDeviceVendorId"
    ).split():
        ours, theirs = (getattr(module, name) for module in PAIR)
        assert {k: int(v) for k, v in ours.__members__.items()} == {k: int(v) for k, v in theirs.__members__.items()}


def test_defaults_of_options():
    for cls, names in (
        (
            "SessionOptions",
            "enable_cpu_mem_arena enable_mem_pattern enable_mem_reuse enable_profiling inter_op_num_threads"
            " intra_op_num_threads log_severity_level log_verbosity_level logid optimized_model_filepath"
            " use_deterministic_compute use_per_session_threads",
        ),
        ("RunOptions", "log_severity_level log_verbosity_level logid only_execute_path_to_fetches terminate"),
    ):
        ours, theirs = (getattr(module, cls)() for module in PAIR)
        for name in names.split():
            assert getattr(ours, name) == getattr(theirs, name), name
            setattr(ours, name, getattr(theirs, name))
        with pytest.raises(AttributeError):
            ours.no_such_option = 1
        with pytest.raises(TypeError):
            setattr(ours, "log_severity_level", "high")


def test_plain_options_have_configuration_keys():
    options = epona.SessionOptions()
    for key, value in (
        ("session.intra_op_num_threads", "3"),
        ("session.graph_optimization_level", "1"),
        ("session.log_severity_level", "4"),
        ("session.enable_profiling", "0"),
    ):
        options.add_session_config_entry(key, value)
        assert options.get_session_config_entry(key) == value
    assert options.intra_op_num_threads == 3 and options.log_severity_level == 4
    assert options.graph_optimization_level == epona.GraphOptimizationLevel.ORT_ENABLE_BASIC
    for key, value in (("session.intra_op_num_threads", "many"), ("session.enable_profiling", "perhaps")):
        with pytest.raises(errors.InvalidArgument, match=f"{key}.*{value}"):
            options.add_session_config_entry(key, value)


def test_unknown_keys_are_warned_about(capfd):
    options = epona.SessionOptions()
    options.add_session_config_entry("session.disable_prepackin", "1")
    options.add_session_config_entry("ep.someone.key", "1")
    epona.InferenceSession(MODEL, options)
    text = capfd.readouterr().err
    assert "'session.disable_prepackin' is not known" in text and "Did you mean 'session.disable_prepacking'?" in text
    assert "ep.someone.key" not in text
    with pytest.warns(UserWarning, match="Did you mean 'gpu_graph_id'"):
        epona.RunOptions().add_run_config_entry("gpu_graph_idd", "1")


@both
def test_run_configuration(module):
    options = module.RunOptions()
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    assert options.get_run_config_entry("disable_synchronize_execution_providers") == "1"
    with pytest.raises(RuntimeError, match="RunOptions does not have configuration with key: x"):
        options.get_run_config_entry("x")


@both
def test_initializer_is_replaced(module):
    options = module.SessionOptions()
    value = module.OrtValue.ortvalue_from_numpy(np.array([10, 20], np.float32))
    options.add_initializer("w", value)
    np.testing.assert_array_equal(module.InferenceSession(MODEL, options).run(None, {"a": A})[0], [[10, 20]])


def test_initializers_that_do_not_fit(capfd):
    options = epona.SessionOptions()
    options.add_initializer("w", epona.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32)))
    with pytest.raises(errors.InvalidArgument, match="'w'.*tensor.float. .3..*tensor.float. .2."):
        epona.InferenceSession(MODEL, options)
    options = epona.SessionOptions()
    options.add_initializer("zz", epona.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32)))
    epona.InferenceSession(MODEL, options)
    assert "'zz'" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="'w' needs an OrtValue"):
        options.add_initializer("w", np.zeros(2, np.float32))


def external_model():
    model = parser.parse_model('<ir_version: 10, opset_import: ["" : 20]> g (float[N,5000] a) => (float[N,5000] s) { s = Add(a, w) }')
    tensor = model.graph.initializer.add(name="w", data_type=1, dims=[5000], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "8"), ("length", "20000")):
        tensor.external_data.add(key=key, value=value)
    return model.SerializeToString()


@both
def test_external_initializers_from_memory(module):
    weights = np.arange(5000, dtype=np.float32)
    a = np.ones((2, 5000), np.float32)
    value = module.OrtValue.ortvalue_from_numpy(weights)
    options = module.SessionOptions()
    options.add_external_initializers(["w"], [value])
    session = module.InferenceSession(external_model(), options)
    np.testing.assert_array_equal(session.run(None, {"a": a})[0], a + weights)
    file = b"\0" * 8 + weights.tobytes()
    options = module.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["w.bin"], [file], [len(file)])
    session = module.InferenceSession(external_model(), options)
    np.testing.assert_array_equal(session.run(None, {"a": a})[0], a + weights)


def test_external_file_in_memory_that_is_too_short():
    options = epona.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["w.bin"], [b"\0" * 100], [100])
    with pytest.raises(errors.Fail, match="w.bin"):
        epona.InferenceSession(external_model(), options)


@both
def test_shape_of_a_reshape_may_be_replaced(module):
    """What type inference reads must be the new value."""
    text = '<ir_version: 10, opset_import: ["" : 20]> g (float[6] a) => (float[M,K] s) <int64[2] d = {2,3}> { s = Reshape(a, d) }'
    options = module.SessionOptions()
    value = module.OrtValue.ortvalue_from_numpy(np.array([3, 2], np.int64))
    options.add_initializer("d", value)
    session = module.InferenceSession(parser.parse_model(text).SerializeToString(), options)
    assert session.run(None, {"a": np.zeros(6, "f")})[0].shape == (3, 2)


@both
def test_profile_is_a_chrome_trace(module, tmp_path):
    options = module.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = module.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    assert session.get_profiling_start_time_ns() > 0
    for _ in range(3):
        session.run(None, {"a": A})
    name = session.end_profiling()
    assert name.startswith(str(tmp_path / "trace_")) and name.endswith(".json")
    with open(name, encoding="utf-8") as file:
        events = json.load(file)
    assert all({"cat", "pid", "tid", "dur", "ts", "ph", "name", "args"} <= event.keys() for event in events)
    nodes = [event for event in events if event["cat"] == "Node" and "provider" in event["args"]]
    assert len(nodes) == 3 and {event["args"]["op_name"] for event in nodes} == {"Add"}
    assert {event["args"]["provider"] for event in nodes} == {"CPUExecutionProvider"}
    assert [event["name"] for event in events].count("model_run") == 3
    session.run(None, {"a": A})
    assert session.end_profiling() == ""
    options.profile_file_prefix = str(tmp_path / "dropped")
    module.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"]).run(None, {"a": A})
    gc.collect()
    assert len(list(tmp_path.glob("dropped_*.json"))) == 1


def test_profile_has_types_and_shapes_as_the_peer_writes_them(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 17]>
      g (float[N,3] a, float[3,4] w, int64[1] k) => (float[N,K] y, int64[K] i, string[2] s)
      { p = MatMul(a, w) y, i2 = TopK(p, k) i = Gather(i2, z) z = Constant<value_int = 0>() s = Constant<value_strings = ["a","b"]>() }"""
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    feed = {"a": np.ones((2, 3), np.float32), "w": np.ones((3, 4), np.float32), "k": np.array([2])}
    found = []
    for module in (epona, onnxruntime):
        options = module.SessionOptions()
        options.enable_profiling = True
        options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.profile_file_prefix = str(tmp_path / module.__name__)
        session = module.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
        session.run(None, feed)
        with open(session.end_profiling(), encoding="utf-8") as file:
            events = json.load(file)
        assert "model_loading_uri" in [event["name"] for event in events] and min(event["ts"] for event in events) >= 0
        keys = ("input_type_shape", "output_type_shape", "activation_size", "parameter_size", "output_size")
        found.append({event["args"]["op_name"]: [event["args"][key] for key in keys] for event in events
                      if event["cat"] == "Node" and event["args"].get("op_name") in ("MatMul", "TopK", "Gather")})
    assert found[0] == found[1] and len(found[0]) == 3


@both
def test_no_profile_unless_asked_for(module):
    assert module.InferenceSession(MODEL, providers=["CPUExecutionProvider"]).end_profiling() == ""


@both
def test_run_async(module):
    session = module.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    done, seen = threading.Event(), []

    def callback(results, user_data, error):
        seen.append((results, user_data, error))
        done.set()

    session.run_async(["s"], {"a": A + 1}, callback, "mine")
    assert done.wait(20)
    assert seen[0][1:] == ("mine", "")
    np.testing.assert_array_equal(seen[0][0][0], [[2, 3]])
    done.clear()
    session.run_async(["zz"], {"a": A}, callback, None)
    assert done.wait(20)
    assert seen[1][:2] == ([], None) and seen[1][2].startswith("Invalid output name:")
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_async(["s"], {}, callback, None)


def test_callback_gets_messages():
    messages = []
    epona.set_default_logger_callback(lambda *parts: messages.append(parts), 2)
    try:
        options = epona.SessionOptions()
        options.logid = "mine"
        options.add_session_config_entry("session.not_known", "1")
        epona.InferenceSession(MODEL, options)
    finally:
        epona.set_default_logger_callback(None)
    assert any(m[0] == 2 and m[2] == "mine" and "session.not_known" in m[4] for m in messages)
    with pytest.raises(TypeError):
        epona.set_default_logger_callback(3)


@both
def test_a_node_that_fails_is_logged(module, capfd):
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x, float[M] y) => (float[K] z) { z = Add(x, y) }'
    model = parser.parse_model(text).SerializeToString()
    feed = {"x": np.ones(2, np.float32), "y": np.ones(3, np.float32)}
    for session_level, run_level, expected in ((-1, -1, True), (4, -1, False), (-1, 4, False), (3, 3, True)):
        options, run_options = module.SessionOptions(), module.RunOptions()
        options.log_severity_level, run_options.log_severity_level = session_level, run_level
        with pytest.raises(Exception, match="Add node"):
            module.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feed, run_options)
        assert ("Non-zero status code returned while running Add node" in capfd.readouterr().err) is expected


@both
def test_devices_of_providers(module):
    device = next(d for d in module.get_ep_devices() if d.ep_name == "CPUExecutionProvider")
    assert int(device.device.type) == 0 and device.device.vendor_id > 0 and device.ep_options == {}
    assert isinstance(device.ep_metadata["version"], str) and device.ep_vendor
    options = module.SessionOptions()
    assert not options.has_providers()
    options.add_provider_for_devices([device], {})
    assert options.has_providers()
    assert module.InferenceSession(MODEL, options).get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(Exception, match="Must provide one or more OrtEpDevice instances.") as info:
        options.add_provider_for_devices([], {})
    assert type(info.value).__name__ == "InvalidArgument"


@both
@pytest.mark.parametrize("policy", ["DEFAULT", "PREFER_CPU", "PREFER_GPU", "MAX_EFFICIENCY"])
def test_policies_choose_the_cpu_where_nothing_else_is(module, policy):
    options = module.SessionOptions()
    options.set_provider_selection_policy(getattr(module.OrtExecutionProviderDevicePolicy, policy))
    assert module.InferenceSession(MODEL, options).get_providers() == ["CPUExecutionProvider"]


@both
def test_a_function_chooses(module):
    asked = []

    def choose(devices, model_metadata, runtime_metadata, limit):
        asked.append((len(devices), limit))
        return [d for d in devices if d.ep_name == "CPUExecutionProvider"]

    options = module.SessionOptions()
    options.set_provider_selection_policy_delegate(choose)
    assert module.InferenceSession(MODEL, options).get_providers() == ["CPUExecutionProvider"]
    assert len(asked) == 1 and asked[0][0] >= 1 and asked[0][1] == 8


@both
def test_assignment_of_nodes(module):
    options = module.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    info = module.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"]).get_provider_graph_assignment_info()
    assert [(g.ep_name, [(n.op_type, n.domain) for n in g.get_nodes()]) for g in info] == [
        ("CPUExecutionProvider", [("Add", "")])
    ]
    with pytest.raises(Exception, match="record_ep_graph_assignment_info") as failure:
        module.InferenceSession(MODEL, providers=["CPUExecutionProvider"]).get_provider_graph_assignment_info()
    assert type(failure.value).__name__ == "Fail"


@both
def test_loading_is_cancelled(module):
    options = module.SessionOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(Exception) as info:
        module.InferenceSession(MODEL, options)
    assert type(info.value).__name__ == "ModelLoadCanceled"


def test_adapters_are_read_and_written_as_the_peer_does(tmp_path):
    arrays = {
        "w": np.array([[1, 2], [3, 4]], np.float32),
        "longer_name": np.arange(7, dtype=np.int64),
        "half": np.ones((2, 1, 3), np.float16),
        "empty": np.zeros((0, 2), np.float32),
    }
    for writer, reader in ((epona, onnxruntime), (onnxruntime, epona), (epona, epona)):
        adapter = writer.AdapterFormat()
        adapter.set_adapter_version(3)
        adapter.set_model_version(7)
        adapter.set_parameters({name: writer.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()})
        path = str(tmp_path / f"{writer.__name__}.onnx_adapter")
        adapter.export_adapter(path)
        read = reader.AdapterFormat.read_adapter(path)
        assert (read.get_format_version(), read.get_adapter_version(), read.get_model_version()) == (1, 3, 7)
        parameters = read.get_parameters()
        assert parameters.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(parameters[name].numpy(), array, strict=True)


@both
def test_adapter_feeds_a_run(module, tmp_path):
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[1,2] x, float[2] w) => (float[1,2] y) { y = Add(x, w) }')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    session = module.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    adapter = module.AdapterFormat()
    value = module.OrtValue.ortvalue_from_numpy(np.array([5, 6], np.float32))
    adapter.set_parameters({"w": value})
    path = str(tmp_path / "a.onnx_adapter")
    adapter.export_adapter(path)
    lora = module.LoraAdapter()
    lora.Load(path)
    options = module.RunOptions()
    options.add_active_adapter(lora)
    np.testing.assert_array_equal(session.run(None, {"x": A}, options)[0], [[5, 6]])
    np.testing.assert_array_equal(session.run(None, {"x": A})[0], [[1, 2]])
    with pytest.raises(RuntimeError):
        lora.Load(str(tmp_path / "missing"))


@pytest.mark.parametrize("cut", [3, 9, 20, 60, 100])
def test_damaged_adapters_are_refused(tmp_path, cut):
    adapter = epona.AdapterFormat()
    adapter.set_parameters({"w": epona.OrtValue.ortvalue_from_numpy(np.ones((2, 2), np.float32))})
    path = tmp_path / "a.onnx_adapter"
    adapter.export_adapter(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        epona.LoraAdapter().Load(str(path))


@both
def test_model_compiler(module, tmp_path):
    data = module.ModelCompiler(module.SessionOptions(), MODEL).compile_to_bytes()
    np.testing.assert_array_equal(module.InferenceSession(data).run(None, {"a": A})[0], [[1, 2]])
    pieces = []
    module.ModelCompiler(module.SessionOptions(), MODEL).compile_to_stream(pieces.append)
    assert b"".join(bytes(piece) for piece in pieces) == data
    path = tmp_path / "out.onnx"
    module.ModelCompiler(module.SessionOptions(), MODEL).compile_to_file(str(path))
    assert onnx.load(path).graph.node[0].op_type == "Add"
    flags = module.OrtCompileApiFlags
    for flag in (flags.ERROR_IF_OUTPUT_FILE_EXISTS, flags.ERROR_IF_NO_NODES_COMPILED):
        with pytest.raises(Exception) as info:
            module.ModelCompiler(module.SessionOptions(), MODEL, flags=flag).compile_to_file(str(path))
        assert type(info.value).__name__ == "Fail"


@both
def test_seed_of_the_process(module):
    text = '<ir_version: 8, opset_import: ["" : 17]> g () => (float[8] y) { y = RandomUniform<shape = [8]>() }'
    model = parser.parse_model(text).SerializeToString()
    draws = []
    for seed in (7, 7, 8):
        module.set_seed(seed)
        draws.append(module.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {})[0])
    assert (draws[0] == draws[1]).all() and not (draws[0] == draws[2]).any()


def test_custom_operators_are_refused_with_a_reason():
    with pytest.raises(errors.NotImplemented, match="/x/y.so.*C ABI"):
        epona.SessionOptions().register_custom_ops_library("/x/y.so")
    with pytest.raises(errors.Fail, match="/x/y.so"):
        epona.register_execution_provider_library("mine", "/x/y.so")


@both
def test_small_things(module, capsys):
    assert module.has_collective_ops() is False and module.get_device() == "CPU"
    assert "Build Info" in module.get_build_info() and isinstance(module.get_version_string(), str)
    module.enable_telemetry_events()
    module.disable_telemetry_events()
    module.preload_dlls()
    module.set_default_logger_verbosity(0)
    with pytest.raises(RuntimeError, match="Invalid logging severity"):
        module.set_default_logger_severity(9)
    info = module.OrtMemoryInfo("Cpu", module.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, module.OrtMemType.DEFAULT)
    module.create_and_register_allocator(info, None)
    module.print_debug_info()
    assert "platform" in capsys.readouterr().out
    session = module.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    assert [m.name for m in session.get_input_memory_infos() + session.get_output_memory_infos()] == ["Cpu", "Cpu"]
    assert session.get_tuning_results() == []
    value = session.create_ortvalue_from_shape_and_type([2], np.float32, "cpu")
    assert value.shape() == [2]


@both
def test_only_memory_that_is_there_is_shrunk(module):
    session = module.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    options = module.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session.run(None, {"a": A}, options)
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0;gpu:0")
    with pytest.raises(module.capi.onnxruntime_pybind11_state.InvalidArgument, match="shrink list: gpu:0"):
        session.run(None, {"a": A}, options)


def test_free_dimensions_that_no_input_has_are_named(capfd):
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] a) => (float[N,3] y) { y = Relu(a) }'
    options = epona.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    options.add_free_dimension_override_by_name("batch", 2)
    session = epona.InferenceSession(parser.parse_model(text).SerializeToString(), options)
    assert session.get_inputs()[0].shape == [2, 3]
    assert "override 'batch' has no effect: no input has a dimension of that name; they have: 'N'" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="'N' cannot be -2"):
        options.add_free_dimension_override_by_name("N", -2)
