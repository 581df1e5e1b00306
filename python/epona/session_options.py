"""The parts of SessionOptions and RunOptions that are written in Python. Importing this module adds them to the classes."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from epona import _epona
from epona.ep_devices import Delegate, OrtEpDevice, OrtExecutionProviderDevicePolicy, choose_devices, set_delegate
from epona.lora import LoraAdapter

_adapters: weakref.WeakKeyDictionary[_epona.RunOptions, list[LoraAdapter]] = weakref.WeakKeyDictionary()


def add_external_initializers(self: _epona.SessionOptions, names: Sequence[str], values: Sequence[Any]) -> None:
    """Takes values in the place of the model's initialisers of these names."""
    if len(names) != len(values):
        raise ValueError(f"add_external_initializers: {len(names)} names for {len(values)} values")
    for name, value in zip(names, values):
        self.add_initializer(name, value)


def add_external_initializers_from_files_in_memory(
    self: _epona.SessionOptions, names: Sequence[str], buffers: Sequence[Any], sizes: Sequence[int]
) -> None:
    """Gives the content of files of external data, by the location that the model names."""
    if not len(names) == len(buffers) == len(sizes):
        raise ValueError(f"{len(names)} names, {len(buffers)} buffers and {len(sizes)} sizes were given")
    for name, buffer, size in zip(names, buffers, sizes):
        content = np.frombuffer(buffer, np.uint8)
        if size > content.size:
            raise ValueError(f"the buffer for '{name}' has {content.size} bytes, {size} were announced")
        self._add_file(name, content[:size])


def add_provider_for_devices(
    self: _epona.SessionOptions, ep_devices: Sequence[OrtEpDevice], provider_options: Mapping[str, str]
) -> None:
    """Adds the provider of these devices, which must all be of one."""
    if not ep_devices:
        raise _epona.InvalidArgument(
            "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Must provide one or more OrtEpDevice instances."
        )
    names = {device.ep_name for device in ep_devices}
    if len(names) > 1:
        raise _epona.InvalidArgument(
            f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : All OrtEpDevice values must be of one provider, found {sorted(names)}"
        )
    (name,) = names
    self.add_provider(name, {} if name == "CPUExecutionProvider" else dict(provider_options))


def set_provider_selection_policy(self: _epona.SessionOptions, policy: OrtExecutionProviderDevicePolicy) -> None:
    """Lets the runtime choose the providers when the session is given none."""
    self.add_session_config_entry("session.provider_policy", OrtExecutionProviderDevicePolicy(policy).name)


def set_provider_selection_policy_delegate(self: _epona.SessionOptions, delegate: Delegate) -> None:
    """Lets a function choose: it gets the devices, two maps about the model and the run, and how many it may return."""
    if not callable(delegate):
        raise TypeError(f"the delegate must be callable, found {type(delegate)}")
    set_delegate(self, delegate)


def register_custom_ops_library(self: _epona.SessionOptions, path: str) -> None:
    """Not possible yet: such a library calls the C ABI of onnxruntime, which Epona does not have so far."""
    raise _epona.NotImplemented(
        f"[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : custom operator library '{path}' cannot be loaded: it needs the C ABI"
        " of onnxruntime, which this version of Epona does not offer"
    )


def set_ep_context_data_read_func(self: _epona.SessionOptions, read_func: Any, max_data_size: int) -> None:
    """Not possible: no provider here makes EPContext models."""
    raise _epona.NotImplemented(
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no provider of this version reads the data of EPContext nodes"
    )


def clear_ep_context_data_read_func(self: _epona.SessionOptions) -> None:
    """Forgets the function, of which there is none."""


def add_active_adapter(self: _epona.RunOptions, adapter: LoraAdapter) -> None:
    """Feeds the parameters of an adapter in runs with these options."""
    if not isinstance(adapter, LoraAdapter):
        raise TypeError(f"add_active_adapter needs a LoraAdapter, found {type(adapter)}")
    _adapters.setdefault(self, []).append(adapter)


def adapter_feed(options: _epona.RunOptions | None) -> dict[str, Any]:
    """What the adapters of these options feed."""
    feed: dict[str, Any] = {}
    if options is not None:
        for adapter in _adapters.get(options, ()):
            feed.update(adapter.parameters())
    return feed


def before_session(given: _epona.SessionOptions | None, used: _epona.SessionOptions) -> None:
    """Applies to the options that a session will use what is kept here for those it was given."""
    if not -1 <= used.log_severity_level <= 4:
        raise RuntimeError(f"Invalid session log severity level. Not a valid severity value: {used.log_severity_level}")
    if given is None:
        return
    if used.has_providers():
        return
    for device in choose_devices(given) or ():
        used.add_provider(device.ep_name, device.ep_options)


def get_default_session_options() -> _epona.SessionOptions:
    """Options as they are when nothing is set."""
    return _epona.SessionOptions()


def _native_add_provider(add):
    def add_provider(self: _epona.SessionOptions, name: str, options: Mapping[str, str]) -> None:
        """Adds a provider with options, after those added before."""
        if not _epona.provider_is_known(name):
            raise RuntimeError(f"Unknown Provider Type: {name}.{_epona.suggest_provider(name)}")
        add(self, name, options)

    return add_provider


for _function in (
    add_external_initializers,
    add_external_initializers_from_files_in_memory,
    add_provider_for_devices,
    set_provider_selection_policy,
    set_provider_selection_policy_delegate,
    register_custom_ops_library,
    set_ep_context_data_read_func,
    clear_ep_context_data_read_func,
):
    setattr(_epona.SessionOptions, _function.__name__, _function)
_epona.SessionOptions.add_provider = _native_add_provider(_epona.SessionOptions.add_provider)
_epona.RunOptions.add_active_adapter = add_active_adapter
