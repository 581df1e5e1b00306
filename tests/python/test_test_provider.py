"""Placement, copies, devices, memory limits and failures at every stage, by the providers for tests."""

import json
import threading
import warnings

import numpy as np
import pytest
from onnx import parser

import epona
from epona.capi import onnxruntime_pybind11_state as errors

CPU, TEST, OTHER = "CPUExecutionProvider", "TestExecutionProvider", "OtherTestExecutionProvider"
MODEL = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4] x) => (float[N,4] y) <float[4] w = {1.0, 2.0, 3.0, 4.0}> {
  [n] a = Neg(x)  [e] b = Exp(a)  [m] c = Mul(b, w)  [s] y = Sqrt(c) }""").SerializeToString()
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
Y = np.sqrt(np.exp(-X) * np.array([1, 2, 3, 4], np.float32))


def make(options=None, config=None, providers=None, **kwargs):
    session_options = epona.SessionOptions()
    for key, value in (config or {}).items():
        session_options.add_session_config_entry(key, value)
    return epona.InferenceSession(MODEL, session_options, providers=providers or [(TEST, options or {}), CPU], **kwargs)


def check(session):
    np.testing.assert_allclose(session.run(None, {"x": X})[0], Y, rtol=1e-5)


def places(session):
    return {node["name"]: node["provider"] for node in session.placement}


def test_is_hidden():
    assert TEST not in epona.get_all_providers() and TEST not in epona.get_available_providers()


def test_copies_at_the_edges_only():
    session = make()
    check(session)
    assert set(places(session).values()) == {TEST}
    copies = {(copy["value"], copy["from"], copy["to"], copy["bytes"], copy["once"]) for copy in session.placement.copies}
    assert copies == {
        ("x", "cpu", "test:0", -1, False),
        ("w", "cpu", "test:0", 16, True),
        ("y", "test:0", "cpu", -1, False),
    }
    assert "copies: 2 in every run, 1 of constants (16 bytes) once" in str(session.placement)


def test_there_and_back(capfd):
    session = make({"ops": "Neg,Mul"})
    assert "3 Memcpy nodes are added to the graph g" in capfd.readouterr().err
    check(session)
    assert places(session) == {"n": TEST, "e": CPU, "m": TEST, "s": CPU}
    declined = {node["name"]: node["declined"] for node in session.placement}
    assert declined["e"] == [{"provider": TEST, "reason": "user option", "text": "option ops is 'Neg,Mul'"}]
    assert not declined["n"]
    assert [(copy["from"], copy["to"]) for copy in session.placement.copies if copy["value"] == "b"] == [("cpu", "test:0")]


def test_from_one_device_to_another():
    session = make(providers=[(TEST, {"ops": "Neg,Mul"}), (OTHER, {"device_id": 1}), CPU])
    check(session)
    assert places(session) == {"n": TEST, "e": OTHER, "m": TEST, "s": OTHER}
    assert {(copy["from"], copy["to"]) for copy in session.placement.copies if copy["value"] == "a"} == {
        ("test:0", "cpu"),
        ("cpu", "othertest:1"),
    }


def test_device_id_moves_the_session():
    session = make()
    session.set_ep_dynamic_options({"device_id": "1"})
    assert session.get_provider_options()[TEST]["device_id"] == "1"
    assert {copy["to"] for copy in session.placement.copies} == {"test:1", "cpu"}
    check(session)
    with pytest.raises(errors.InvalidArgument, match="from 0 to 1"):
        session.set_ep_dynamic_options({"device_id": 2})
    with pytest.raises(errors.InvalidArgument, match="'ops' cannot be changed while the session lives"):
        session.set_ep_dynamic_options({"device_id": 0, "ops": "Neg"})
    assert session.get_provider_options()[TEST]["device_id"] == "1"
    check(session)


@pytest.mark.parametrize("stage, text", [("probe", "a pretend device"), ("start", "when it starts"), ("claim", "when it claims")])
def test_failure_before_anything_is_built(stage, text):
    with pytest.warns(UserWarning, match=f"(?s){TEST}.*{text}"):
        session = make({"fail": stage})
    assert session.get_providers() == [CPU] and set(places(session).values()) == {CPU}
    assert [entry["provider"] for entry in session.placement.inactive] == [TEST]
    check(session)
    with pytest.raises(errors.EPFail, match=TEST):
        make({"fail": stage}, enable_fallback=0)
    with pytest.raises(errors.EPFail, match=TEST):
        make({"fail": stage}, {"session.fallback": "forbid"})


def test_failure_to_build_one_node():
    session = make({"fail": "build", "fail_op": "Exp"}, providers=[(TEST, {"fail": "build", "fail_op": "Exp"}), OTHER, CPU])
    check(session)
    assert places(session) == {"n": TEST, "e": OTHER, "m": TEST, "s": TEST}
    (exp,) = [node for node in session.placement if node["name"] == "e"]
    assert exp["declined"][0]["provider"] == TEST and exp["declined"][0]["reason"] == "build failed"
    assert "told to fail" in exp["declined"][0]["text"]
    with pytest.raises(errors.EPFail, match="told to fail when it builds"):
        make({"fail": "build", "fail_op": "Exp"}, enable_fallback=0)


def test_failure_to_build_all():
    with pytest.warns(UserWarning, match=f"{TEST}.*could not build"):
        session = make({"fail": "build"})
    assert session.get_providers() == [CPU]
    assert session.placement.inactive[0]["stage"] == "build"
    check(session)


def test_failure_while_running_is_retried_on_the_next():
    session = make({"fail": "run", "fail_op": "Mul", "good_runs": 2})
    check(session)
    check(session)
    with pytest.warns(UserWarning, match=f"{TEST}' failed while running"):
        check(session)
    assert session.get_providers() == [CPU]
    (left,) = session.placement.inactive
    assert left["provider"] == TEST and left["stage"] == "run" and "Mul" in left["cause"]
    check(session)


def test_failure_in_many_runs_at_once():
    session = make({"fail": "run", "fail_op": "Mul", "good_runs": 5})
    wrong = []

    def work():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(10):
                try:
                    check(session)
                except Exception as error:  # noqa: BLE001
                    wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and session.get_providers() == [CPU] and len(session.placement.inactive) == 1


def test_failure_while_running_may_be_an_error():
    session = make({"fail": "run"})
    session.disable_fallback()
    with pytest.raises(errors.EPFail, match="Neg node on TestExecutionProvider"):
        session.run(None, {"x": X})
    assert session.get_providers() == [TEST, CPU]
    session.enable_fallback()
    with pytest.warns(UserWarning, match=TEST):
        check(session)
    with pytest.raises(errors.EPFail):
        make({"fail": "run"}, enable_fallback=0).run(None, {"x": X})


def test_other_errors_of_kernels_are_not_retried():
    session = make({"fail": "kernel_error"})
    with pytest.raises(errors.Fail, match="told to fail"):
        session.run(None, {"x": X})
    assert session.get_providers() == [TEST, CPU]


def test_out_of_memory_for_weights():
    with pytest.warns(UserWarning, match="(?s)out of memory.*gpu_mem_limit=8"):
        session = make({"gpu_mem_limit": 8})
    assert session.get_providers() == [CPU]
    check(session)


def test_out_of_memory_while_running():
    session = make({"gpu_mem_limit": 4096})
    check(session)
    assert session.get_providers() == [TEST, CPU]
    large = np.zeros((4096, 4), np.float32)
    with pytest.warns(UserWarning, match="out of memory"):
        (result,) = session.run(None, {"x": large})
    assert result.shape == large.shape and session.get_providers() == [CPU]
    check(session)


def test_memory_limit_changes_in_place():
    session = make({"gpu_mem_limit": 4096})
    session.set_ep_dynamic_options({"gpu_mem_limit": 1 << 20})
    assert session.get_provider_options()[TEST]["gpu_mem_limit"] == str(1 << 20)
    large = np.zeros((4096, 4), np.float32)
    session.run(None, {"x": large})
    assert session.get_providers() == [TEST, CPU]


def test_no_cpu():
    only = {"session.disable_cpu_ep_fallback": "1"}
    check(make(config=only, providers=[TEST]))
    with pytest.raises(errors.Fail, match="assigned to the default CPU EP"):
        make(config=only, providers=[(TEST, {"ops": "Neg"})])


def test_required_share():
    make(config={"session.require_placement": f"{TEST}:1.0"})
    with pytest.raises(errors.Fail, match="asks for at least 90%"):
        make({"ops": "Neg"}, {"session.require_placement": f"{TEST}:0.9"})


def test_profile_names_the_provider(tmp_path):
    options = epona.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = epona.InferenceSession(MODEL, options, providers=[(TEST, {"ops": "Neg"}), CPU])
    check(session)
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)
    providers = {event["args"].get("provider") for event in events if "args" in event}
    assert {TEST, CPU} <= providers
