"""Epona runs ONNX models. The API is that of the onnxruntime package: `import epona as ort`."""

from epona._epona import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    ModelMetadata,
    NodeArg,
    RunOptions,
    SessionOptions,
    __version__,
    available_isas,
    isa,
    set_default_logger_severity,
)
from epona.devices import (
    OrtAllocatorType,
    OrtArenaCfg,
    OrtDevice,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtMemoryInfo,
    OrtMemoryInfoDeviceType,
    OrtMemType,
)
from epona.inference_session import InferenceSession
from epona.io_binding import IOBinding
from epona.ort_value import OrtValue, copy_tensors
from epona.sparse_tensor import OrtSparseFormat, SparseTensor
from epona.providers import get_all_providers, get_available_providers


def get_device() -> str:
    """The kind of device this build computes on by default: "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """The package's version."""
    return __version__


__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "__version__",
    "available_isas",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
    "isa",
    "set_default_logger_severity",
]
