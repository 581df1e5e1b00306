"""Each row of differential.py on both packages: the same result, or the same class, code and prefix of an exception."""

import re

import differential
import numpy as np
import onnxruntime
import pytest

import epona

PREFIX = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")


def outcome(call, module):
    """("value", result), or ("raises", class, prefix)."""
    try:
        return "value", call(module)
    except Exception as error:  # noqa: BLE001: which it is, is the question
        prefix = PREFIX.match(str(error))
        return "raises", type(error).__name__, prefix.group() if prefix else "", str(error)


def same(x, y):
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return x.dtype == y.dtype and x.shape == y.shape and bool(np.array_equal(x, y))
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(same(a, b) for a, b in zip(x, y))
    return x == y


def equal(ours, theirs):
    if ours[0] != theirs[0]:
        return False
    return ours[1:3] == theirs[1:3] if ours[0] == "raises" else same(ours[1], theirs[1])


@pytest.mark.parametrize("row", differential.SAME, ids=lambda row: row.title)
def test_same(row, capfd):
    ours, theirs = outcome(row.call, epona), outcome(row.call, onnxruntime)
    assert equal(ours, theirs), f"{row.title}:\n  ours   {ours}\n  theirs {theirs}"


@pytest.mark.parametrize("row", differential.DIFFERENT, ids=lambda row: row.title)
def test_different_on_purpose(row, capfd):
    ours, theirs = outcome(row.call, epona), outcome(row.call, onnxruntime)
    assert not equal(ours, theirs), f"{row.title}: no longer different: {ours}"
    if ours[0] == "raises":
        assert ours[1] == row.expect, ours
    else:
        assert same(ours[1], row.expect), ours


@pytest.mark.parametrize(
    "call, words",
    [
        (differential.run({"a": differential.A.astype("f8"), "b": differential.B}), ["'a'", "tensor(double)", "tensor(float)"]),
        (differential.run({"a": differential.A[0], "b": differential.B}), ["input: a", "Got: 1", "Expected: 2"]),
        (differential.run({"a": differential.A[:, :1], "b": differential.B}), ["input: a", "index: 1", "Got: 1", "Expected: 2"]),
        (differential.run({"a": differential.A}), ["'b'"]),
        (differential.run({"a": differential.A, "b": None}), ["b"]),
        (differential.run({**differential.FEED, "zz": differential.B}), ["zz", "'a', 'b'"]),
        (differential.run(differential.FEED, ["zz"]), ["zz", "'s'"]),
        (differential.run({"a": differential.A, "b": {1}}), ["'b'", "set"]),
        (differential.loads(differential.UNARY.format("Bogus(x)")), ["Bogus"]),
        (differential.loads(differential.UNARY.format("Add(x, q)")), ["'q'", "Add"]),
        (differential.run({"x": differential.B}, None, differential.UNARY.format("Softmax<axis = 5>(x)")), ["Softmax", "5"]),
        (differential.external("missing.bin"), ["w", "missing.bin"]),
    ],
    ids=range(12),
)
def test_messages_name_what_is_wrong(call, words):
    kind, *_, text = outcome(call, epona)
    assert kind == "raises"
    for word in words:
        assert word in text
