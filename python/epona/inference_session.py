"""InferenceSession: a model made ready to run."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from epona import _epona
from epona.placement import Placement
from epona.providers import ProviderList, option_text, parse_request, warn_of_inactive
from epona.session import Session
from epona.session_options import before_session


_KEYWORDS = {"enable_fallback", "disabled_optimizers", "read_config_from_model"}
_PARAMETERS = ("path_or_bytes", "sess_options", "providers", "provider_options")


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

        path_or_bytes: a file name or the bytes of a serialised ModelProto. Files (the model's and its external data)
            are mapped while the session is made and must not change meanwhile; afterwards they may.
        sess_options: see SessionOptions.
        providers: names, or (name, options) pairs, in order of preference; None means CPUExecutionProvider.
        provider_options: one dict for each name in `providers`.
        enable_fallback=0 (keyword): a provider that cannot run, or fails, is an error instead of a warning.
        disabled_optimizers (keyword): names of passes that must not run.
        Other keywords are warned about and have no effect.
        """
        for name in kwargs.keys() - _KEYWORDS:
            near = difflib.get_close_matches(name, [*_KEYWORDS, *_PARAMETERS], 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            warnings.warn(f"InferenceSession has no argument '{name}'; it has no effect.{hint}", stacklevel=2)
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._source: str | bytes = os.fspath(path_or_bytes)
        elif isinstance(path_or_bytes, bytes):
            self._source = path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if self._source == "":
            raise TypeError("Unable to load from an empty path")
        if isinstance(self._source, str) and "\0" in self._source:
            raise ValueError(f"Unable to load from a path with a NUL character: {self._source!r}")
        if sess_options is not None and not isinstance(sess_options, _epona.SessionOptions):
            raise TypeError(f"sess_options must be SessionOptions or None, found {type(sess_options)}")
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
        for name, entry in parse_request(providers, provider_options):
            options.add_provider(name, entry)
        if not self._enable_fallback and not options.has_config_key("session.fallback"):
            options.add_session_config_entry("session.fallback", "forbid")
        before_session(sess_options, options)
        for name in kwargs.get("disabled_optimizers") or ():
            options._disable_pass(str(name))
        self._session = _epona.Session(self._source, options)
        self._fallback_policy = options.config_value("session.fallback", "warn")
        self._warned = 0
        self._warn_of_inactive(stacklevel=4)

    def _warn_of_inactive(self, stacklevel: int) -> None:
        """Warns of what happened since the last time."""
        inactive = self._session.inactive_providers()
        if self._fallback_policy != "allow":
            warn_of_inactive(inactive[self._warned :], stacklevel)
        self._warned = len(inactive)

    def get_providers(self) -> list[str]:
        """The active providers, in order."""
        return self._session.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Every effective option of the active providers."""
        return dict(self._session.provider_options())

    def set_providers(
        self, providers: str | ProviderList | None = None, provider_options: Sequence[Mapping] | None = None
    ) -> None:
        """Plans the model again for other providers, from memory. On an error the session stays as it was; runs in flight
        finish on the old plan."""
        self._session.set_providers(parse_request(providers, provider_options))
        self._warned = 0
        self._warn_of_inactive(stacklevel=4)

    def set_ep_dynamic_options(self, options: Mapping[str, Any]) -> None:
        """Changes options of active providers that are marked live in their schema (`epona providers NAME`).

        Nothing is changed when a key is unknown, cannot be changed in a living session, or has a bad value.
        """
        self._session.set_dynamic_options({str(key): option_text(value) for key, value in options.items()})

    def get_session_options(self) -> _epona.SessionOptions:
        """The options this session was made with."""
        return self._sess_options if self._sess_options is not None else _epona.SessionOptions()

    def _fallback(self) -> str:
        return self._fallback_policy if self._enable_fallback else "forbid"

    def disable_fallback(self) -> None:
        """Errors of a provider are raised instead of retried on the next."""
        self._enable_fallback = False
        self._session.allow_run_fallback(False)

    def enable_fallback(self) -> None:
        """The opposite of disable_fallback()."""
        self._enable_fallback = True
        self._session.allow_run_fallback(True)

    def get_placement(self) -> Placement:
        """For every node of the model: its provider, and why the providers asked first declined. print() it."""
        return Placement(self._session)

    @property
    def placement(self) -> Placement:
        """The same as get_placement()."""
        return self.get_placement()

