"""What every provider must do, whatever it runs on."""

import threading

import contract_models as models
import numpy as np
import pytest

import epona
from epona.capi import onnxruntime_pybind11_state as errors

CPU = "CPUExecutionProvider"


def session(model, provider, options=None, **kwargs):
    # Kernels of one node each: a provider is compared with the CPU's portable meaning, not with its fusions.
    return epona.InferenceSession(model, providers=[(provider, options or {}), CPU] if provider != CPU else [CPU], **kwargs)


def same(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype == object:
            assert a.tolist() == b.tolist()
        else:
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", models.TEXTS)
def test_results_are_those_of_the_cpu(provider, name, rng):
    model = models.build(name)
    ours, theirs = session(model, provider), epona.InferenceSession(model)
    for n in (2, 3, 2, 1, 0, 5):  # shapes seen before, new ones, and none at all
        if n == 0 and name in ("conv", "loop"):
            continue
        feed = models.feeds(name, n, rng)
        same(ours.run(None, feed), theirs.run(None, feed))


@pytest.mark.parametrize("name", models.TEXTS)
def test_every_node_has_a_provider_or_a_reason(provider, name):
    placement = session(models.build(name), provider).placement
    for node in placement:
        assert bool(node["provider"]) != bool(node["vanished"]), node
        if node["provider"] == CPU and provider != CPU:
            assert [entry["provider"] for entry in node["declined"]].count(provider) >= 1, node
            assert all(entry["reason"] and entry["text"] for entry in node["declined"]), node


def test_runs_something_and_is_listed(provider):
    one = session(models.build("chain"), provider)
    assert one.get_providers() == list(dict.fromkeys([provider, CPU]))
    assert {node["provider"] for node in one.placement if node["provider"]} == {provider}
    assert one.placement.providers[provider]["flop_share"] == 1
    assert not one.placement.inactive


def test_every_option_has_an_effective_value(provider):
    options = session(models.build("chain"), provider).get_provider_options()
    assert set(options) == {provider, CPU}
    assert set(options[provider]) == {option["key"] for option in epona.get_provider_schema(provider)}


def test_unknown_option(provider):
    with pytest.raises(errors.InvalidArgument, match=f"{provider} has no option 'no_such_key'"):
        epona.InferenceSession(models.build("chain"), providers=[(provider, {"no_such_key": 1})])


def test_many_threads_share_a_session(provider, rng):
    model = models.build("matmul")
    ours, theirs = session(model, provider), epona.InferenceSession(model)
    cases = [models.feeds("matmul", n, rng) for n in (1, 2, 3, 4)]
    wanted = [theirs.run(None, feed) for feed in cases]
    wrong = []

    def work(offset):
        try:
            for i in range(12):
                at = (i + offset) % len(cases)
                same(ours.run(None, cases[at]), wanted[at])
        except Exception as error:  # noqa: BLE001
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_session_moves_there_and_back(provider, rng):
    model = models.build("conv")
    one, feed = epona.InferenceSession(model), models.feeds("conv", 2, rng)
    wanted = one.run(None, feed)
    one.set_providers([provider, CPU] if provider != CPU else [CPU])
    assert one.get_providers()[0] == provider
    same(one.run(None, feed), wanted)
    one.set_providers([CPU])
    assert one.get_providers() == [CPU]
    same(one.run(None, feed), wanted)


def test_results_outlive_later_runs(provider, rng):
    one = session(models.build("diamond"), provider)
    feed = models.feeds("diamond", 3, rng)
    first = one.run(None, feed)
    kept = [value.copy() for value in first]
    one.run(None, models.feeds("diamond", 3, rng))
    same(first, kept)


def test_io_binding_writes_into_the_bound_memory(provider, rng):
    model = models.build("chain")
    one, feed = session(model, provider), models.feeds("chain", 2, rng)
    out = epona.OrtValue.ortvalue_from_numpy(np.zeros((2, 8), np.float32))
    binding = one.io_binding()
    binding.bind_cpu_input("x", feed["x"])
    binding.bind_ortvalue_output("y", out)
    one.run_with_iobinding(binding)
    same([out.numpy()], epona.InferenceSession(model).run(None, feed))


def test_wrong_feeds_are_named(provider):
    one = session(models.build("matmul"), provider)
    with pytest.raises(errors.InvalidArgument, match="x"):
        one.run(None, {"x": np.zeros((2, 9), np.float32)})
    with pytest.raises(errors.InvalidArgument, match="x"):
        one.run(None, {"x": np.zeros((2, 8), np.float64)})
