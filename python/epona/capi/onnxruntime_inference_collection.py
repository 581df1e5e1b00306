"""Sessions, bindings and values, under the name that programs import."""

from epona.capi import onnxruntime_pybind11_state as C  # noqa: F401, N812
from epona.devices import OrtDevice, OrtDeviceVendorId
from epona.inference_session import InferenceSession
from epona.io_binding import IOBinding
from epona.lora import AdapterFormat
from epona.model_compiler import ModelCompiler
from epona.ort_value import OrtValue, copy_tensors
from epona.session import Session
from epona.sparse_tensor import SparseTensor

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "copy_tensors",
]
