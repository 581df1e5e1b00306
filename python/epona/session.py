"""Session: what can be done with a model that is loaded. InferenceSession derives from it and loads one."""

from __future__ import annotations

import concurrent.futures
import os
import sys
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from epona import _epona
from epona.devices import (
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtMemoryInfo,
    describe_device,
    device_argument,
    kind_of_device,
)
from epona.ep_devices import OrtEpAssignedNode, OrtEpAssignedSubgraph, OrtEpDevice, get_ep_devices
from epona.io_binding import IOBinding
from epona.placement import Placement
from epona.ort_value import OrtValue, OrtValueVector, element_type_number
from epona.session_options import adapter_feed
from epona.sparse_tensor import SparseOrtValue

_async_lock = threading.Lock()
_async_pool: concurrent.futures.ThreadPoolExecutor | None = None


def _pool() -> concurrent.futures.ThreadPoolExecutor:
    global _async_pool
    with _async_lock:
        if _async_pool is None:
            _async_pool = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="epona-run-async")
        return _async_pool


def _forget_pool() -> None:
    """A child of fork() has none of the threads."""
    global _async_lock, _async_pool
    _async_lock, _async_pool = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _call_back(callback: Callable, results: list[Any], user_data: Any, error: str) -> None:
    """Calls it; there is nobody who could catch what it raises, so that goes to sys.unraisablehook."""
    try:
        callback(results, user_data, error)
    except BaseException as exception:  # noqa: BLE001
        sys.unraisablehook(
            types.SimpleNamespace(
                exc_type=type(exception),
                exc_value=exception,
                exc_traceback=exception.__traceback__,
                err_msg="Exception ignored in the callback of run_async",
                object=callback,
            )
        )


def _memory_of(device: tuple[str, int] | None) -> OrtMemoryInfo:
    name, index = device or ("cpu", 0)
    kind, vendor = kind_of_device(name)
    memory, allocator = OrtDeviceMemoryType.DEFAULT, OrtAllocatorType.ORT_DEVICE_ALLOCATOR
    return OrtMemoryInfo.create_v2(name.capitalize(), kind, vendor, index, memory, 64, allocator)


def _bare_text(error: Exception) -> str:
    """The message without the prefix and code that exceptions carry."""
    return str(error).split(" : ", 3)[-1]


class Session:
    """Runs a loaded model. Many threads may use one session; the GIL is released while it runs."""

    _session: _epona.Session

    def _prepare(self, output_names: Any, feed: Any, run_options: _epona.RunOptions | None) -> dict:
        if output_names is not None and (
            isinstance(output_names, (str, bytes)) or not all(isinstance(name, str) for name in output_names)
        ):
            raise TypeError("run(): incompatible function arguments: output_names must be a list of strings")
        if run_options is not None and not isinstance(run_options, _epona.RunOptions):
            raise TypeError(f"run(): incompatible function arguments: run_options must be RunOptions, found {type(run_options)}")
        adapted = adapter_feed(run_options)
        return feed if type(feed) is dict and not adapted else adapted | dict(zip(feed.keys(), feed.values()))

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: _epona.RunOptions | None = None,
    ) -> list[Any]:
        """Computes the outputs named (all when None or empty).

        input_feed: input name -> numpy array, OrtValue, list (sequence), dict (map) or None (an absent optional).
        Returns one result for each name, in the order asked.
        Raises InvalidArgument for a wrong name, type, rank or dim; Fail when a node fails; ValueError for missing inputs.
        """
        feed = self._prepare(output_names, input_feed, run_options)
        return self._session.run(output_names, feed, run_options)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Sequence[Any], Any, str], None],
        user_data: Any,
        run_options: _epona.RunOptions | None = None,
    ) -> None:
        """As run(), on another thread; `callback(results, user_data, error)` is called there when it is over.

        After a failure `results` is empty and `error` says why. A wrong feed is raised at once. What the callback raises is
        given to sys.unraisablehook.
        """
        if not callable(callback):
            raise TypeError(f"run_async(): the callback must be callable, found {type(callback)}")
        feed = self._prepare(output_names, input_feed, run_options)
        missing = [value.name for value in self.get_inputs() if value.name not in feed and "optional(" not in value.type]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

        def work() -> None:
            try:
                results, error = self._session.run(output_names, feed, run_options), ""
            except Exception as exception:  # noqa: BLE001: whatever it is, the callback must hear of it
                results, error = [], _bare_text(exception) or type(exception).__name__
            _call_back(callback, results, user_data, error)

        _pool().submit(work)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: _epona.RunOptions | None = None,
    ) -> list[OrtValue]:
        """As run(), with OrtValues on both sides."""
        feed = {}
        for name, value in input_dict_ort_values.items():
            native = value._get_c_value()
            feed[name] = native.to_dense() if isinstance(native, SparseOrtValue) else native
        feed = self._prepare(output_names, feed, run_options)
        return [OrtValue(value) for value in self._session.run_with_ort_values(feed, output_names, run_options)]

    def run_with_ortvaluevector(
        self,
        run_options: _epona.RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[_epona.OrtValue],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[Any],
    ) -> None:
        """As run(), with native OrtValues in two rows; the results are put into `fetches`."""
        if len(feed_names) != len(feeds):
            raise ValueError(f"run_with_ortvaluevector: {len(feed_names)} names for {len(feeds)} feeds")
        devices = [None if describe_device(device)[0] == "cpu" else device for device in fetch_devices or ()]
        feed = dict(zip(feed_names, feeds))
        fetches[:] = self._session.run_with_ort_values(feed, list(fetch_names), run_options, devices)

    def _fallback(self) -> str:
        """What may happen where a device or provider is missing: "allow", "warn" or "forbid"."""
        return "warn"

    def io_binding(self) -> IOBinding:
        """An object that holds inputs and outputs of runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: _epona.RunOptions | None = None) -> None:
        """Runs on what is bound; errors are RuntimeError."""
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding._iobinding.run(self._session, run_options)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """An uninitialised tensor on a device; on one of this session it counts in the session's memory limit."""
        device = device_argument(device_type, device_id, vendor_id)
        number = element_type_number(element_type)
        dims = [int(dim) for dim in shape]
        return OrtValue(_epona.OrtValue.ortvalue_from_shape_and_onnx_type(dims, number, device, self._session))

    def get_inputs(self) -> list[_epona.NodeArg]:
        """Inputs that must be fed."""
        return self._session.inputs_meta

    def get_outputs(self) -> list[_epona.NodeArg]:
        """Outputs in the model's order."""
        return self._session.outputs_meta

    def get_overridable_initializers(self) -> list[_epona.NodeArg]:
        """Initialisers that may be fed."""
        return self._session.overridable_initializers

    def get_modelmeta(self) -> _epona.ModelMetadata:
        """What the model says about itself."""
        return self._session.model_meta

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory that inputs are read from."""
        return [_memory_of(device) for device in self._session.input_devices()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory that outputs are written to."""
        return [_memory_of(device) for device in self._session.output_devices()]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """For each input the device that reads it."""
        devices = {device.ep_name: device for device in get_ep_devices()}
        first = devices[self._session.get_providers()[0]]
        return [first for _ in self.get_inputs()]

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """The nodes of each provider. Needs the session configuration session.record_ep_graph_assignment_info = 1."""
        if not self._session.has_config("session.record_ep_graph_assignment_info", "1"):
            raise _epona.Fail(
                "[ONNXRuntimeError] : 1 : FAIL : Session configuration entry"
                ' \'session.record_ep_graph_assignment_info\' must be set to "1" to retrieve the assignment of nodes'
            )
        groups = []
        for record in Placement(self._session):
            if not record["provider"]:
                continue  # nothing runs it any more
            node = OrtEpAssignedNode(name=record["name"], domain=record["domain"], op_type=record["op_type"])
            groups.append(OrtEpAssignedSubgraph(ep_name=record["provider"], nodes=[node]))
        return groups

    def end_profiling(self) -> str:
        """Writes what SessionOptions.enable_profiling collected, as a Chrome trace, and returns the name of the file."""
        return self._session.end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, in nanoseconds since 1970."""
        return self._session.get_profiling_start_time_ns

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Nothing to release: no provider of this version captures graphs."""

    def get_tuning_results(self) -> list[Any]:
        """Empty: kernels are chosen when the model is loaded, without a search that could be kept."""
        return []

    def set_tuning_results(self, results: Sequence[Any], *, error_on_invalid: bool = False) -> None:
        """Accepted and ignored; RuntimeError with error_on_invalid when there are any."""
        if results and error_on_invalid:
            raise RuntimeError("set_tuning_results: these results are of another runtime")

    def get_creation_times(self) -> list[tuple[str, float]]:
        """Phases of the session's creation in milliseconds."""
        return self._session.creation_times()

    def get_passes(self) -> list[tuple[str, int, float]]:
        """Graph passes that ran: name, rewrites, milliseconds."""
        return self._session.passes()

    @property
    def _sess(self) -> _epona.Session:
        """The native session, under the name that programs written for onnxruntime know."""
        return self._session
