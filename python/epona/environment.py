"""What concerns the whole process: versions, logging, threads, libraries."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping
from typing import Any

from epona import _epona
from epona.devices import OrtArenaCfg, OrtMemoryInfo


def get_device() -> str:
    """The kind of device this build computes on by default: "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """The package's version."""
    return _epona.__version__


def get_build_info() -> str:
    """What this build is, in one line."""
    return f"Epona Build Info: version={_epona.__version__}, isa={_epona.isa()}, build type=Release"


def has_collective_ops() -> bool:
    """Whether operators that run across machines are there: no."""
    return False


def enable_telemetry_events() -> None:
    """Nothing happens: Epona has no telemetry."""


def disable_telemetry_events() -> None:
    """Nothing happens: Epona has no telemetry."""


def set_seed(seed: int) -> None:
    """Sets the seed of random operators whose node has none."""
    _epona.set_seed(int(seed))


def set_default_logger_verbosity(level: int) -> None:
    """Accepted; Epona's verbose messages have one level."""
    int(level)


def set_default_logger_callback(
    callback: Callable[[int, str, str, str, str], None] | None, severity: int = 2
) -> None:
    """Gives messages to a function (severity, category, log id, place, text) instead of stderr; None restores stderr."""
    if callback is not None and not callable(callback):
        raise TypeError("set_default_logger_callback needs a function or None")
    if callback is not None:
        _epona.set_default_logger_severity(severity)
    _epona._set_log_callback(callback)


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Sets how many threads sessions use that do not say it themselves."""
    if intra_op_num_threads < 0 or inter_op_num_threads < 0:
        raise ValueError("a thread pool cannot have a negative size")
    _epona._set_default_threads(intra_op_num_threads)


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Accepted for host memory: sessions plan their memory themselves and share no arena."""
    _check_host(mem_info)


def create_and_register_allocator_v2(
    provider_type: str, mem_info: OrtMemoryInfo, options: Mapping[str, str], arena_cfg: OrtArenaCfg | None
) -> None:
    """Accepted for host memory: sessions plan their memory themselves and share no arena."""
    _check_host(mem_info)


def _check_host(mem_info: OrtMemoryInfo) -> None:
    if not isinstance(mem_info, OrtMemoryInfo):
        raise TypeError(f"an OrtMemoryInfo is needed, found {type(mem_info)}")
    if mem_info._device_type != 0:
        raise RuntimeError(f"no provider for the memory '{mem_info.name}' is available here")


def register_execution_provider_library(registration_name: str, library_path: str) -> None:
    """Not possible yet: a provider library calls the C ABI of onnxruntime, which Epona does not have so far."""
    raise _epona.Fail(
        f"[ONNXRuntimeError] : 1 : FAIL : Failed to load library {library_path} for '{registration_name}': provider libraries"
        " need the C ABI of onnxruntime, which this version of Epona does not offer"
    )


def unregister_execution_provider_library(registration_name: str) -> None:
    """There are none to unregister."""
    raise _epona.Fail(
        f"[ONNXRuntimeError] : 1 : FAIL : Execution provider library: {registration_name} was not registered."
    )


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Nothing needs to be loaded beforehand: providers open their vendor's libraries themselves."""


def print_debug_info() -> None:
    """Prints versions, the machine and the providers, for reports."""
    from epona.providers import get_available_providers

    lines: dict[str, Any] = {
        "epona": f"{_epona.__version__} ({_epona.__file__})",
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "instruction set": f"{_epona.isa()} of {', '.join(_epona.available_isas())}",
        "available providers": ", ".join(get_available_providers()),
    }
    for key, value in lines.items():
        print(f"{key}: {value}")
