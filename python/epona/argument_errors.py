"""What is wrong with the arguments of a native function that took none of them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Parameter(NamedTuple):
    """One parameter of a signature."""

    name: str
    type: str
    optional: bool


def split(text: str, separator: str) -> list[str]:
    """Splits at separators that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "[(<") - (letter in "])>")
        if depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i])
            start = i + len(separator)
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def parameters(signature: str) -> list[Parameter]:
    """The parameters in "def name(self, key: str, value: int = 0) -> None"."""
    inside = signature[signature.index("(") + 1 :]
    depth = 1
    for i, letter in enumerate(inside):
        depth += (letter in "[(<") - (letter in "])>")
        if depth == 0:
            inside = inside[:i]
            break
    found = []
    for part in split(inside, ","):
        if part in ("*", "/"):
            continue
        declared, _, default = part.partition(" = ")
        name, _, annotation = declared.partition(": ")
        found.append(Parameter(name, annotation or "object", bool(default)))
    return found


def fits(value: Any, annotation: str) -> bool:
    """Whether a value could be taken for what an annotation names; True when that cannot be told."""
    return any(_fits_one(value, one) for one in split(annotation, " | "))


def _fits_one(value: Any, annotation: str) -> bool:
    base, _, inside = annotation.partition("[")
    inner = split(inside[:-1], ",") if inside else []
    if base == "None":
        return value is None
    if base == "int":
        return hasattr(type(value), "__index__")
    if base == "float":
        return isinstance(value, (int, float, np.number))
    simple = {"str": str, "bytes": bytes, "bool": (bool, np.bool_), "dict": dict, "list": list, "tuple": tuple}
    if base in simple:
        return isinstance(value, simple[base])
    if base.endswith(".Sequence"):
        return (
            isinstance(value, Sequence)
            and not isinstance(value, (str, bytes))
            and all(fits(item, inner[0]) for item in value if inner)
        )
    if base.endswith(".Mapping"):
        return isinstance(value, Mapping) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items() if inner)
    if base.startswith("epona."):
        return base in (f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__)
    return True


def describe(value: Any) -> str:
    """A value's type, and the value where it is short."""
    text = repr(value)
    kind = type(value).__qualname__
    return f"{kind} ({text})" if len(text) <= 40 and not text.startswith("<") else kind


def complaint(given: Sequence[Any], named: Mapping[str, Any], wanted: Sequence[Parameter], setter: bool) -> str | None:
    """What keeps arguments from being those of a signature."""
    if len(given) > len(wanted):
        most = len(wanted) - (bool(wanted) and wanted[0].name == "self")
        return f"it takes {most} argument{'' if most == 1 else 's'} at most, {len(given) - (len(wanted) - most)} were given"
    names = [parameter.name for parameter in wanted]
    for name in named:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            return f"there is no argument '{name}'" + (f". Did you mean '{near[0]}'?" if near else "")
    for i, parameter in enumerate(wanted):
        if i < len(given):
            value = given[i]
        elif parameter.name in named:
            value = named[parameter.name]
        elif parameter.optional:
            continue
        else:
            return f"argument '{parameter.name}' is missing"
        if not fits(value, parameter.type):
            what = "the value" if setter else f"argument '{parameter.name}'"
            return f"{what} must be {parameter.type.replace('epona._epona.', '')}, found {describe(value)}"
    return None


def explain(function: Callable, name: str, given: Sequence[Any], named: Mapping[str, Any], text: str) -> str | None:
    """A better message than nanobind's `text`, or None."""
    signatures = [record[0] for record in function.__nb_signature__]
    setter = function.__name__ == ""
    found = []
    for signature in signatures:
        reason = complaint(given, named, parameters(signature), setter)
        if reason is None:
            return None
        if reason not in found:
            found.append(reason)
    call = name if setter else f"{name.removesuffix('.__init__')}()"
    shown = "" if setter else "\n" + "\n".join(s.removeprefix("def ").replace("epona._epona.", "") for s in signatures)
    return f"{call}: incompatible function arguments: {'; or '.join(found)}{shown}"
