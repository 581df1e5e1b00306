"""InferenceSession: a model made ready to run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from epona import _epona
from epona.providers import ProviderList, parse_request
from epona.session import Session
from epona.session_options import before_session


class InferenceSession(Session):
    """Loads a model and runs it."""

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike,
        sess_options: _epona.SessionOptions | None = None,
        providers: str | ProviderList | None = None,
        provider_options: Sequence[Mapping] | None = None,
        **kwargs: Any,
    ) -> None:
        """Loads a model.

        path_or_bytes: a file name or the bytes of a serialised ModelProto.
        sess_options: see SessionOptions.
        providers: names, or (name, options) pairs, in order of preference; None means CPUExecutionProvider.
        provider_options: one dict for each name in `providers`.
        enable_fallback=0 (keyword): an unavailable provider is an error instead of a warning.
        disabled_optimizers (keyword): names of passes that must not run.
        """
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._source: str | bytes = os.fspath(path_or_bytes)
        elif isinstance(path_or_bytes, bytes):
            self._source = path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if self._source == "":
            raise TypeError("Unable to load from an empty path")
        if isinstance(self._source, bytes) and isinstance(path_or_bytes, os.PathLike):
            self._source = os.fsdecode(self._source)
        self._enable_fallback = bool(kwargs.get("enable_fallback", 1))
        self._sess_options = sess_options
        options = sess_options._clone() if sess_options is not None else _epona.SessionOptions()
        if providers and options.has_providers():
            warnings.warn(
                "Specified 'providers'/'provider_options' when creating InferenceSession but SessionOptions has already"
                " been configured with providers. InferenceSession will only use the providers passed to"
                " InferenceSession().",
                stacklevel=2,
            )
            options._clear_providers()
        usable, unavailable = parse_request(providers, provider_options)
        if unavailable and not self._enable_fallback:
            raise RuntimeError(
                f"Providers {unavailable} are not available here and fallback is disabled (enable_fallback=0)."
            )
        if unavailable and options.has_config("session.disable_cpu_ep_fallback", "1"):
            raise _epona.Fail(
                "[ONNXRuntimeError] : 1 : FAIL : This session contains graph nodes that are assigned to the default CPU"
                " EP, but fallback to CPU EP has been explicitly disabled by the user."
                f" Asked for and not available: {unavailable}"
            )
        for name, entry in usable:
            options.add_provider(name, {str(key): str(value) for key, value in entry.items()})
        before_session(sess_options, options)
        for name in kwargs.get("disabled_optimizers") or ():
            options._disable_pass(str(name))
        self._session = _epona.Session(self._source, options)

    def get_providers(self) -> list[str]:
        """The active providers, in order."""
        return self._session.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options of the active providers."""
        return {name: {} for name in self._session.get_providers()}

    def get_session_options(self) -> _epona.SessionOptions:
        """The options this session was made with."""
        return self._sess_options if self._sess_options is not None else _epona.SessionOptions()

    def disable_fallback(self) -> None:
        """Errors of a provider are raised instead of retried on the next."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """The opposite of disable_fallback()."""
        self._enable_fallback = True

    def get_placement(self) -> list[dict]:
        """For every node: name, op_type, domain, graph, provider, and why the providers asked first declined."""
        return self._session.placement()
