"""What a TypeError of a native function says."""

import numpy as np
import pytest

import epona
from epona import _epona, argument_errors

OPTIONS = epona.SessionOptions()


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: setattr(OPTIONS, "graph_optimization_level", "all"),
            "SessionOptions.graph_optimization_level: incompatible function arguments: "
            "the value must be GraphOptimizationLevel, found str ('all')",
        ),
        (lambda: setattr(OPTIONS, "intra_op_num_threads", "3"), "SessionOptions.intra_op_num_threads: .*must be int, found str"),
        (lambda: setattr(epona.RunOptions(), "terminate", "no"), "RunOptions.terminate: .*must be bool, found str ('no')"),
        (
            lambda: OPTIONS.add_session_config_entry("key", 3),
            "SessionOptions.add_session_config_entry(): incompatible function arguments: "
            "argument 'value' must be str, found int (3)\nadd_session_config_entry(self, key: str, value: str) -> None",
        ),
        (lambda: OPTIONS.add_session_config_entry("key"), "argument 'value' is missing"),
        (lambda: OPTIONS.add_session_config_entry(key="a", valu="b"), "there is no argument 'valu'. Did you mean 'value'?"),
        (lambda: OPTIONS.add_session_config_entry("a", "b", "c"), "it takes 2 arguments at most, 3 were given"),
        (lambda: epona.SessionOptions(3), "SessionOptions(): .*it takes 0 arguments at most, 1 were given"),
        (lambda: epona.set_default_logger_severity("high"), "set_default_logger_severity(): .*'severity' must be int, found str"),
        (lambda: OPTIONS.add_free_dimension_override_by_name("N", 2.5), "'value' must be int, found float (2.5)"),
        (
            lambda: epona.OrtValue.ortvalue_from_numpy(np.ones(3)).numpy().__class__ and _epona.OrtValue.from_dlpack(),
            "OrtValue.from_dlpack(): .*argument 'data' is missing",
        ),
        (
            lambda: _epona.OrtValue.ortvalue_from_shape_and_onnx_type([1, "2"], 1),
            "OrtValue.ortvalue_from_shape_and_onnx_type(): .*'shape' must be collections.abc.Sequence[int], found list ([1, '2'])",
        ),
        (
            lambda: _epona.Session(3, OPTIONS),
            "Session(): .*argument 'path' must be str, found int (3); or argument 'bytes' must be bytes, found int (3)",
        ),
        (lambda: _epona.SessionIOBinding(OPTIONS), "SessionIOBinding(): .*'session' must be Session, found SessionOptions"),
    ],
)
def test_names_function_and_argument(call, text):
    with pytest.raises(TypeError) as info:
        call()
    message = str(info.value)
    assert "incompatible function arguments" in message  # as onnxruntime's
    for part in text.split(": .*"):
        assert part in message, message


def test_other_type_errors_are_left_alone():
    with pytest.raises(TypeError, match="^from_dlpack: an object of type"):
        _epona.OrtValue.from_dlpack(3)
    with pytest.raises(TypeError, match="must be SessionOptions"):
        epona.InferenceSession(b"", 3)


def test_every_function_of_the_module_is_covered():
    """One that no value fits says which argument it is, by name."""
    class Nothing:
        pass

    seen = 0
    for owner in (_epona, *(value for value in vars(_epona).values() if isinstance(value, type))):
        for name, member in vars(owner).items():
            if type(member).__name__ != "nb_func":
                continue
            wanted = [p for signature in member.__nb_signature__ for p in argument_errors.parameters(signature[0])]
            if not wanted or argument_errors.fits(Nothing(), wanted[0].type):
                continue
            with pytest.raises(TypeError, match=f"'{wanted[0].name}' must be .*, found "):
                getattr(owner, name)(*[Nothing()] * len(argument_errors.parameters(member.__nb_signature__[0][0])))
            seen += 1
    assert seen > 10


def test_signatures_are_read():
    parse = argument_errors.parameters
    assert parse("def f() -> None") == []
    assert parse("def f(self, a: dict[str, int], /, *, b: str | None = None) -> list[tuple[str, int]]") == [
        ("self", "object", False),
        ("a", "dict[str, int]", False),
        ("b", "str | None", True),
    ]
    assert argument_errors.fits({"a": 1}, "collections.abc.Mapping[str, int]")
    assert not argument_errors.fits({"a": "b"}, "collections.abc.Mapping[str, int]")
    assert argument_errors.fits(None, "int | None") and not argument_errors.fits(None, "int")
    assert argument_errors.fits(np.int64(3), "int") and not argument_errors.fits(3.0, "int")
