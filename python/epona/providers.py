"""Execution providers: their names, what they need, their options, and how a request for them is read."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from epona import _epona

ProviderList = Sequence["str | tuple[str, Mapping]"]

# Vendors' libraries lie in Python packages: tell the probes where this interpreter has them.
_epona._set_package_folders([folder for folder in sys.path if folder.endswith("-packages")])


def get_all_providers() -> list[str]:
    """Every provider name that Epona knows, in order of preference."""
    return _epona.get_all_providers()


def get_available_providers() -> list[str]:
    """The providers that can run here, in order of preference."""
    return _epona.get_available_providers()


class Doctor(dict):
    """What every provider needs and what is there: a dict that prints as a table."""

    def __str__(self) -> str:
        return _epona.doctor_table()

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self, indent=1)


def doctor() -> Doctor:
    """Looks what every provider needs and what of it is there; `print(epona.doctor())` is a table with the fixes."""
    return Doctor(json.loads(_epona.doctor_json()))


def get_provider_schema(name: str) -> list[dict[str, Any]]:
    """The options of a provider: key, type, default, allowed, help, and whether it is live (may change in a session)."""
    return json.loads(_epona.provider_schema_json(name))


def option_text(value: Any) -> str:
    """An option's value as providers read it: True is "1", the rest as str() has it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _pairs(providers: ProviderList, options: Sequence[Mapping] | None) -> list[tuple[str, dict]]:
    if options is not None:
        if isinstance(options, (str, bytes, Mapping)) or not isinstance(options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(options) != len(providers):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(entry, Mapping) for entry in options):
            raise ValueError("'provider_options' values must be dicts.")
        return [(name, dict(entry)) for name, entry in zip(providers, options)]
    pairs = []
    for provider in providers:
        if isinstance(provider, str):
            pairs.append((provider, {}))
        elif (
            isinstance(provider, (tuple, list))
            and len(provider) == 2
            and isinstance(provider[0], str)
            and isinstance(provider[1], Mapping)
        ):
            pairs.append((provider[0], dict(provider[1])))
        else:
            raise ValueError(f"'providers' values must be either strings or (string, dict) tuples; found {provider!r}.")
    return pairs


def parse_request(
    providers: str | ProviderList | None, options: Sequence[Mapping] | None = None, stacklevel: int = 3
) -> list[tuple[str, dict[str, str]]]:
    """Reads `providers` and `provider_options` as InferenceSession takes them: (name, options as text) pairs.

    A bare string is a list of one. A name asked for twice is warned about and used once; an option of value None is as
    good as absent. ValueError for a malformed request, RuntimeError for an unknown name.
    """
    if providers is None:
        return []
    if isinstance(providers, str):
        providers = [providers]
    request: list[tuple[str, dict[str, str]]] = []
    for name, entry in _pairs(list(providers), options):
        if any(name == other for other, _ in request):
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=stacklevel)
            continue
        if not _epona.provider_is_known(name):
            raise RuntimeError(
                f"Unknown Provider Type: {name}.{_epona.suggest_provider(name)} "
                f"Available providers: '{', '.join(get_available_providers())}'"
            )
        request.append((name, {str(key): option_text(value) for key, value in entry.items() if value is not None}))
    return request


def warn_of_inactive(inactive: Sequence[tuple[str, str, str, str]], stacklevel: int = 4) -> None:
    """One warning for each provider that was asked for and is not active: why, and what would help."""
    for name, stage, cause, fix in inactive:
        what = {
            "probe": "is not in available provider names. "
            f"Available providers: '{', '.join(get_available_providers())}'",
            "start": "could not be started",
            "build": "could not build what it took",
            "run": "failed while running and was left",
        }.get(stage, "is not active")
        text = f"Specified provider '{name}' {what}. Its nodes run on the next provider. Cause: {cause}."
        warnings.warn(text + (f" To fix it: {fix}." if fix else ""), stacklevel=stacklevel)
