"""Names of execution providers, and how a user's request for them is read."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence

_ALL = [
    "TensorrtExecutionProvider",
    "CUDAExecutionProvider",
    "ROCMExecutionProvider",
    "OpenVINOExecutionProvider",
    "CoreMLExecutionProvider",
    "DmlExecutionProvider",
    "QNNExecutionProvider",
    "CPUExecutionProvider",
]
_AVAILABLE = ["CPUExecutionProvider"]

ProviderList = Sequence["str | tuple[str, Mapping]"]


def get_all_providers() -> list[str]:
    """Every provider name that Epona knows, in order of preference."""
    return list(_ALL)


def get_available_providers() -> list[str]:
    """The providers that can run here, in order of preference."""
    return list(_AVAILABLE)


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
            isinstance(provider, tuple)
            and len(provider) == 2
            and isinstance(provider[0], str)
            and isinstance(provider[1], Mapping)
        ):
            pairs.append((provider[0], dict(provider[1])))
        else:
            raise ValueError(
                f"'providers' values must be either strings or (string, dict) tuples; found {provider!r}."
            )
    return pairs


def parse_request(
    providers: str | ProviderList | None, options: Sequence[Mapping] | None
) -> tuple[list[tuple[str, dict]], list[str]]:
    """Reads `providers` and `provider_options` as InferenceSession takes them.

    Returns the (name, options) pairs that can be used, and the known names that cannot be used here. A name asked for
    twice is warned about and used once; ValueError for a malformed request; RuntimeError for an unknown name.
    """
    if providers is None:
        return [], []
    if isinstance(providers, str):
        providers = [providers]
    usable: list[tuple[str, dict]] = []
    unavailable: list[str] = []
    for name, entry in _pairs(list(providers), options):
        if any(name == other for other, _ in usable) or name in unavailable:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
            continue
        if name in _AVAILABLE:
            usable.append((name, entry))
            continue
        if name not in _ALL:
            near = difflib.get_close_matches(name, _ALL, 1, 0.4)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise RuntimeError(
                f"Unknown Provider Type: {name}.{hint} Available providers: '{', '.join(_AVAILABLE)}'"
            )
        warnings.warn(
            f"Specified provider '{name}' is not in available provider names. "
            f"Available providers: '{', '.join(_AVAILABLE)}'. Its nodes run on CPUExecutionProvider.",
            stacklevel=4,
        )
        unavailable.append(name)
    return usable, unavailable
