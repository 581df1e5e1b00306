"""OrtValue: a tensor, sequence or map held by the runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

from epona import _epona

_TENSOR_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "object": 8,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4_e2m1fn": 23,
}


def _check_device(device_type: str, device_id: int) -> None:
    if device_type.lower() not in ("cpu", "cuda", "dml", "gpu", "npu", "webgpu"):
        raise Exception(f"Unsupported device type: {device_type}")
    if device_type.lower() != "cpu":
        raise RuntimeError(
            f"Can't allocate memory on the device '{device_type}:{device_id}': no provider for it is available here."
        )


class OrtValue:
    """A value in the runtime's memory. Tensors made from numpy share memory with the array."""

    def __init__(self, ortvalue: _epona.OrtValue):
        if not isinstance(ortvalue, _epona.OrtValue):
            raise ValueError("`Provided ortvalue` needs to be of type `epona._epona.OrtValue`")
        self._ortvalue = ortvalue

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Wraps an array; on the CPU nothing is copied, so that changes to the array are seen."""
        _check_device(device_type, device_id)
        return cls(_epona.OrtValue.ortvalue_from_numpy(numpy_obj))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Any, element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """An uninitialised tensor. `element_type` is a numpy type or a number of onnx.TensorProto.DataType."""
        _check_device(device_type, device_id)
        number = element_type if isinstance(element_type, int) else _TENSOR_TYPES[np.dtype(element_type).name]
        return cls(_epona.OrtValue.ortvalue_from_shape_and_type(list(shape), number))

    def numpy(self) -> Any:
        """The value as numpy sees it: an array sharing this memory, a list, or a dict."""
        return self._ortvalue.numpy()

    def shape(self) -> list[int]:
        """Dims of a tensor."""
        return self._ortvalue.shape()

    def element_type(self) -> int:
        """The number of the element type in onnx.TensorProto.DataType."""
        return self._ortvalue.element_type()

    def data_type(self) -> str:
        """The type as text, as in "tensor(float)"."""
        return self._ortvalue.data_type()

    def device_name(self) -> str:
        """Where the memory is: "cpu"."""
        return self._ortvalue.device_name()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._ortvalue.data_ptr()

    def tensor_size_in_bytes(self) -> int:
        """Bytes that the elements take."""
        return self._ortvalue.tensor_size_in_bytes()

    def is_tensor(self) -> bool:
        """Whether it holds a tensor."""
        return self._ortvalue.is_tensor()

    def is_tensor_sequence(self) -> bool:
        """Whether it holds a sequence."""
        return self._ortvalue.is_tensor_sequence()

    def is_sparse_tensor(self) -> bool:
        """Whether it holds a sparse tensor."""
        return self._ortvalue.is_sparse_tensor()

    def has_value(self) -> bool:
        """Whether it holds anything (an optional may not)."""
        return self._ortvalue.has_value()

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Copies an array of the same type and size into this memory."""
        self._ortvalue.update_inplace(np_arr)
