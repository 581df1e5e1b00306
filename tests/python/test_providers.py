"""Providers: names, probes, options, fallback, changes while a session lives."""

import json
import pathlib
import sys
import threading
import time
import warnings

import numpy as np
import onnx
import onnxruntime
import program
import pytest
from onnx import parser

import epona
from epona.capi import onnxruntime_pybind11_state as errors

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,2] a, float[2] b) => (float[N,2] s, float[N,2] d) { s = Add(a, b)  d = Sub(a, b) }"""
MODEL = parser.parse_model(TEXT).SerializeToString()
A = np.array([[1, 2], [3, 4]], np.float32)
B = np.array([10, 20], np.float32)
CPU = "CPUExecutionProvider"


def check(session):
    s, d = session.run(None, {"a": A, "b": B})
    np.testing.assert_array_equal(s, A + B)
    np.testing.assert_array_equal(d, A - B)


def test_all_names_in_the_order_of_the_peer():
    names = epona.get_all_providers()
    assert names[:8] == [
        "TensorrtExecutionProvider",
        "CUDAExecutionProvider",
        "ROCMExecutionProvider",
        "OpenVINOExecutionProvider",
        "CoreMLExecutionProvider",
        "DmlExecutionProvider",
        "QNNExecutionProvider",
        CPU,
    ]
    assert set(names[:8]) <= set(onnxruntime.get_all_providers()) | {"ROCMExecutionProvider"}
    assert CPU in epona.get_available_providers()
    assert set(epona.get_available_providers()) <= set(names)


def test_doctor_says_what_is_missing_and_how_to_get_it():
    start = time.perf_counter()
    doctor = epona.doctor()
    assert time.perf_counter() - start < 2.0  # 200 ms alone; other tests may run beside it
    rows = {row["name"]: row for row in doctor["providers"]}
    assert list(rows) == epona.get_all_providers()
    assert [name for name, row in rows.items() if row["available"]] == epona.get_available_providers()
    for name, row in rows.items():
        missing = [finding for finding in row["findings"] if not finding["ok"]]
        assert bool(missing) != row["available"], name
        assert all(finding["what"] and (finding["found"] or finding["needed"]) for finding in missing)
        assert row["available"] or row["fix"], name
    assert "platform" in rows["DmlExecutionProvider"]["cause"] or sys.platform == "win32"
    table = str(doctor)
    assert all(name in table for name in rows) and "fix:" in table
    assert json.loads(doctor.to_json())["providers"] == doctor["providers"]


def test_schemas_hold_the_documented_keys():
    def keys(name):
        return {option["key"]: option for option in epona.get_provider_schema(name)}

    cuda, tensorrt = keys("CUDAExecutionProvider"), keys("TensorrtExecutionProvider")
    for key in (
        "device_id gpu_mem_limit arena_extend_strategy cudnn_conv_algo_search do_copy_in_default_stream"
        " cudnn_conv_use_max_workspace enable_cuda_graph user_compute_stream use_tf32 cudnn_conv1d_pad_to_nc1d"
        " prefer_nhwc enable_skip_layer_norm_strict_mode tunable_op_enable gpu_external_alloc"
    ).split():
        assert key in cuda, key
    for key in (
        "device_id trt_max_workspace_size trt_fp16_enable trt_int8_enable trt_int8_calibration_table_name"
        " trt_engine_cache_enable trt_engine_cache_path trt_timing_cache_enable trt_profile_min_shapes"
        " trt_profile_max_shapes trt_profile_opt_shapes trt_builder_optimization_level trt_cuda_graph_enable"
    ).split():
        assert key in tensorrt, key
    for name in epona.get_all_providers():
        for option in epona.get_provider_schema(name):
            assert option["help"] and option["type"] in ("str", "int", "bool", "float", "enum", "path"), option
            # Every default is a value that the schema itself accepts.
            assert epona._epona.check_provider_options(name, {option["key"]: option["default"]})[option["key"]] == option["default"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"device_ids": 0}, "Did you mean 'device_id'"),
        ({"cudnn_conv_algo_search": "EXHAUSTED"}, "'EXHAUSTIVE', 'HEURISTIC', 'DEFAULT'"),
        ({"gpu_mem_limit": "lots"}, "whole number"),
        ({"device_id": -1}, "from 0 to"),
        ({"use_tf32": "maybe"}, "0, 1, false or true"),
    ],
)
def test_wrong_options_are_errors(options, message):
    with pytest.raises(errors.InvalidArgument, match=message) as error:
        epona.InferenceSession(MODEL, providers=[("CUDAExecutionProvider", options), CPU])
    assert next(iter(options)) in str(error.value) and "CUDAExecutionProvider" in str(error.value)


@pytest.mark.parametrize("value, text", [(True, "1"), ("False", "0"), (0, "0"), ("1", "1")])
def test_values_of_any_type(value, text):
    session = epona.InferenceSession(MODEL, providers=[(CPU, {"use_arena": value, "arena_extend_strategy": None})])
    assert session.get_provider_options() == {CPU: {"use_arena": text, "arena_extend_strategy": "kNextPowerOfTwo"}}


def test_asked_for_and_not_available_is_reported():
    with pytest.warns(UserWarning, match="(?s)CUDAExecutionProvider.*Available providers.*Cause: .*To fix it: ") as caught:
        session = epona.InferenceSession(MODEL, providers=["CUDAExecutionProvider", CPU])
    assert len(caught) == 1 and caught[0].filename == __file__
    assert session.get_providers() == [CPU]
    (inactive,) = session.placement.inactive
    assert inactive["provider"] == "CUDAExecutionProvider" and inactive["stage"] == "probe" and inactive["fix"]
    assert "CUDAExecutionProvider" in str(session.placement)
    check(session)


def config(**entries):
    options = epona.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry("session." + key, value)
    return options


def test_fallback_may_be_forbidden_or_silent():
    wanted = ["CUDAExecutionProvider", CPU]
    with pytest.raises(errors.EPFail, match="CUDAExecutionProvider"):
        epona.InferenceSession(MODEL, providers=wanted, enable_fallback=0)
    with pytest.raises(errors.EPFail, match="session.fallback=forbid"):
        epona.InferenceSession(MODEL, config(fallback="forbid"), providers=wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = epona.InferenceSession(MODEL, config(fallback="allow"), providers=wanted)
    assert session.placement.inactive
    with pytest.raises(errors.InvalidArgument, match="allow, warn or forbid"):
        epona.InferenceSession(MODEL, config(fallback="forbidden"), providers=wanted)
    with pytest.raises(errors.Fail, match="assigned to the default CPU EP"):
        epona.InferenceSession(MODEL, config(disable_cpu_ep_fallback="1"), providers=["CUDAExecutionProvider"])
    for explicit in (wanted, [CPU]):
        with pytest.raises(errors.InvalidArgument, match="Conflicting session configuration"):
            epona.InferenceSession(MODEL, config(disable_cpu_ep_fallback="1"), providers=explicit)


def test_names():
    assert epona.InferenceSession(MODEL, providers=CPU).get_providers() == [CPU]
    with pytest.raises(RuntimeError, match="Did you mean 'CUDAExecutionProvider'"):
        epona.InferenceSession(MODEL, providers=["cuda"])
    with pytest.warns(UserWarning, match="AzureExecutionProvider"):
        assert epona.InferenceSession(MODEL, providers=["AzureExecutionProvider", CPU]).get_providers() == [CPU]
    with pytest.warns(UserWarning, match="Duplicate provider"):
        epona.InferenceSession(MODEL, providers=[CPU, CPU])


def test_required_share():
    epona.InferenceSession(MODEL, config(require_placement=f"{CPU}:1"))
    with pytest.raises(errors.Fail, match="OpenVINOExecutionProvider; it has 0%") as error:
        epona.InferenceSession(MODEL, config(require_placement="OpenVINOExecutionProvider:0.5"))
    assert "provider" in str(error.value) and "Add" in str(error.value)  # the report
    with pytest.raises(errors.InvalidArgument, match="PROVIDER:SHARE"):
        epona.InferenceSession(MODEL, config(require_placement="Nobody:0.5"))


@pytest.mark.parametrize("from_file", [True, False])
def test_set_providers_reads_no_file(tmp_path, from_file):
    path = tmp_path / "model.onnx"
    path.write_bytes(MODEL)
    session = epona.InferenceSession(str(path) if from_file else MODEL)
    path.unlink()
    check(session)
    session.set_providers([(CPU, {"use_arena": 0})])
    assert session.get_provider_options()[CPU]["use_arena"] == "0"
    check(session)
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        session.set_providers(["CUDAExecutionProvider"])
    assert session.get_providers() == [CPU]
    session.set_providers(CPU)
    assert not session.placement.inactive


def test_set_providers_with_external_weights_that_are_gone(tmp_path):
    model = parser.parse_model(TEXT.replace("s = Add(a, b)", "s = Add(a, w)"))
    weights = np.arange(2, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights.bin")
    session = epona.InferenceSession(path)
    path.unlink()
    (tmp_path / "weights.bin").unlink()
    session.set_providers(["TestExecutionProvider", CPU])
    np.testing.assert_array_equal(session.run(["s"], {"a": A, "b": B})[0], A + weights)


def test_set_providers_changes_nothing_on_an_error():
    session = epona.InferenceSession(MODEL, providers=[(CPU, {"use_arena": 0})])
    for wrong, error in [
        ([(CPU, {"nonsense": 1})], errors.InvalidArgument),
        (["Nobody"], RuntimeError),
        ([3], ValueError),
    ]:
        with pytest.raises(error):
            session.set_providers(wrong)
        assert session.get_provider_options()[CPU]["use_arena"] == "0"
        check(session)


def test_set_providers_while_runs_are_in_flight():
    session = epona.InferenceSession(MODEL)
    stop, wrong = threading.Event(), []

    def work():
        while not stop.is_set():
            try:
                check(session)
            except Exception as error:  # noqa: BLE001
                wrong.append(error)
                return

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(20):
        session.set_providers([(CPU, {"use_arena": i % 2})])
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dynamic_options_refuse_what_cannot_change():
    session = epona.InferenceSession(MODEL)
    with pytest.raises(errors.InvalidArgument, match="'use_arena' cannot be changed while the session lives"):
        session.set_ep_dynamic_options({"use_arena": "0"})
    with pytest.raises(errors.InvalidArgument, match="no active provider has an option 'ep.dynamic.workload_typ'"):
        session.set_ep_dynamic_options({"ep.dynamic.workload_typ": "Efficient"})
    check(session)


def test_document_is_up_to_date():
    root = pathlib.Path(__file__).resolve().parents[2]
    assert (root / "docs" / "providers.md").read_text() == epona._epona.provider_document(), "run scripts/provider_docs.py"


def cli(*words):
    return program.run(*words)


def test_a_library_of_another_version_is_named(tmp_path):
    (tmp_path / "libcublasLt.so.11").touch()
    text = program.run("doctor", "--json", check=True, env={"LD_LIBRARY_PATH": str(tmp_path), "PATH": "/nowhere"}).stdout
    (cuda,) = [row for row in json.loads(text)["providers"] if row["name"] == "CUDAExecutionProvider"]
    (finding,) = [finding for finding in cuda["findings"] if finding["what"] == "libcublasLt"]
    assert finding["ok"] or "libcublasLt.so.11, another version" in finding["found"]


def test_options_from_the_session_configuration():
    options = epona.SessionOptions()
    options.add_session_config_entry("ep.testexecutionprovider.ops", "Add")
    options.add_session_config_entry("ep.test.device_id", "1")
    session = epona.InferenceSession(MODEL, options, providers=[("TestExecutionProvider", {"ops": "Sub"}), CPU])
    effective = session.get_provider_options()["TestExecutionProvider"]
    assert effective["ops"] == "Sub" and effective["device_id"] == "1"
    check(session)


def test_command_line(tmp_path):
    assert "CPUExecutionProvider" in cli("doctor").stdout
    assert [row["name"] for row in json.loads(cli("doctor", "--json").stdout)["providers"]] == epona.get_all_providers()
    schema = json.loads(cli("providers", "CUDAExecutionProvider", "--json").stdout)
    assert schema["CUDAExecutionProvider"] == epona.get_provider_schema("CUDAExecutionProvider")
    assert "gpu_mem_limit" in cli("providers", "CUDAExecutionProvider").stdout
    path = tmp_path / "model.onnx"
    path.write_bytes(MODEL)
    explained = json.loads(cli("explain", path, "--providers", f"CUDAExecutionProvider,{CPU}", "--json").stdout)
    assert explained["inactive"][0]["provider"] == "CUDAExecutionProvider"
    assert [node["op_type"] for node in explained["nodes"]] == ["Add", "Sub"]
    page = tmp_path / "placement.html"
    assert cli("explain", path, "--html", page).returncode == 0 and "<svg" not in page.read_text()[:200]
    assert "whole number" in cli("explain", path, "--providers", "CUDAExecutionProvider",
                                 "--option", "CUDAExecutionProvider.device_id=x").stderr
    wrong = cli("providers", "cuda")
    assert wrong.returncode == 2 and "CUDAExecutionProvider" in wrong.stderr


@pytest.mark.parametrize(
    "call",
    [
        lambda: epona.InferenceSession(MODEL, providers=["CUDAExecutionProvider", CPU]),
        lambda: epona.InferenceSession(MODEL, providers=[CPU, CPU]),
        lambda: epona.InferenceSession(MODEL, provider=[CPU]),
        lambda: epona.InferenceSession(MODEL, providers=[("TestExecutionProvider", {"fail": "start"}), CPU]),
        lambda: epona.InferenceSession(MODEL).set_providers(["CUDAExecutionProvider", CPU]),
        lambda: epona.InferenceSession(MODEL).set_providers([CPU, CPU]),
        lambda: epona.InferenceSession(MODEL, providers=[("TestExecutionProvider", {"fail": "run"}), CPU]).run(None, {"a": A, "b": B}),
        lambda: epona.InferenceSession(MODEL).io_binding().bind_output("s", "cuda"),
        lambda: epona.RunOptions().add_run_config_entry("nonsense", "1"),
    ],
)
def test_warnings_point_at_the_line_that_caused_them(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    (warning,) = seen
    assert (warning.filename, warning.lineno) == (__file__, call.__code__.co_firstlineno)


def test_misspelt_arguments_are_warned_about():
    with pytest.warns(UserWarning, match="no argument 'provider'.*Did you mean 'providers'?"):
        epona.InferenceSession(MODEL, provider=[CPU])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        epona.InferenceSession(MODEL, disabled_optimizers=["fuse_gelu"], read_config_from_model=1, enable_fallback=1)


def test_passes_are_switched_off_by_their_names_and_those_of_onnxruntime(capfd):
    def passes(options=None, **kwargs):
        return {name for name, *_ in epona.InferenceSession(MODEL, options, **kwargs).get_passes()}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything = passes()
        assert everything - passes(disabled_optimizers=["constant_folding", "GeluFusion"]) == {"constant_folding", "fuse_gelu"}
    for name, hint in (("constant_foldin", "Did you mean 'constant_folding'"), ("QDQFinalCleanupTransformer", "no effect")):
        with pytest.warns(UserWarning, match=f"there is no pass '{name}'.*{hint}") as seen:
            assert passes(disabled_optimizers=[name]) == everything
        assert seen[0].filename == __file__
    options = epona.SessionOptions()
    options.add_session_config_entry("optimization.disable_specified_optimizers", "ConstantFolding;Nothing")
    assert everything - passes(options) == {"constant_folding"}
    assert "there is no pass 'Nothing'" in capfd.readouterr().err
