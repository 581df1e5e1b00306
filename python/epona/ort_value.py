"""OrtValue: a tensor, sequence, map or sparse tensor held by the runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from epona import _epona
from epona.devices import OrtDeviceVendorId, OrtMemoryInfo, device_argument
from epona.sparse_tensor import NativeSparseTensor, SparseOrtValue, SparseTensor

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
    "float8_e8m0fnu": 24,
    "uint2": 25,
    "int2": 26,
}


def element_type_number(element_type: Any) -> int:
    """The number in onnx.TensorProto.DataType of a number, a numpy or ml_dtypes type, or its name."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        return int(element_type)
    try:
        dtype = np.dtype(element_type)
    except TypeError:
        if isinstance(element_type, str) and element_type in _TENSOR_TYPES:
            return _TENSOR_TYPES[element_type]
        raise RuntimeError(f"Not a valid numpy type: {element_type!r}") from None
    name = "object" if dtype.kind in "UST" else dtype.name
    if name not in _TENSOR_TYPES:
        raise RuntimeError(f"numpy type {dtype} has no tensor type")
    return _TENSOR_TYPES[name]


class OrtValue:
    """A value in the runtime's memory. Tensors made from numpy share memory with the array."""

    def __init__(
        self, ortvalue: _epona.OrtValue, numpy_obj: np.ndarray | None = None, session: Any | None = None
    ) -> None:
        if not isinstance(ortvalue, (_epona.OrtValue, SparseOrtValue)):
            raise ValueError(
                "`Provided ortvalue` needs to be of type `onnxruntime.capi.onnxruntime_pybind11_state.OrtValue`;"
                f" found {type(ortvalue)}"
            )
        self._ortvalue = ortvalue
        self._numpy_obj = numpy_obj
        self._session = session

    def _get_c_value(self) -> _epona.OrtValue:
        return self._ortvalue

    def _check_writable(self, what: str) -> None:
        if self._read_only():
            raise RuntimeError(f"{what}: this OrtValue shares the memory of an array that is read-only: make it of a copy")

    @classmethod
    def ortvalue_from_numpy(
        cls,
        numpy_obj: np.ndarray,
        /,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int | OrtDeviceVendorId = -1,
    ) -> OrtValue:
        """Wraps an array; on the CPU nothing is copied, so that changes to the array are seen. To the memory of another
        device it is copied; RuntimeError, saying what is missing, where this machine has no such device."""
        device = device_argument(device_type, device_id, vendor_id)
        if device is None:
            return cls(_epona.OrtValue.ortvalue_from_numpy(numpy_obj), numpy_obj)
        return cls(_epona.OrtValue.ortvalue_from_numpy(numpy_obj, device))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """Wraps an array whose elements are the bits of another type, as bfloat16 in uint16. An array of bytes stands for as
        many int4, uint4, int2, uint2 or float4 elements as it has, packed at its beginning."""
        return cls(_epona.OrtValue.ortvalue_from_numpy_with_onnx_type(data, onnx_element_type), data)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int | OrtDeviceVendorId = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """An uninitialised tensor, also in the memory of a device. `element_type` is a numpy type or a number of
        onnx.TensorProto.DataType."""
        device = memory_info if memory_info is not None else device_argument(device_type, device_id, vendor_id)
        number = element_type_number(element_type)
        return cls(_epona.OrtValue.ortvalue_from_shape_and_onnx_type([int(dim) for dim in shape], number, device))

    @classmethod
    def ortvalue_from_sequence(cls, items: Sequence[Any]) -> OrtValue:
        """A sequence of arrays or OrtValues, copied."""
        return cls(_epona.OrtValue.ortvalue_from_sequence(list(items)))

    @classmethod
    def ortvalue_from_map(cls, items: Mapping[Any, Any]) -> OrtValue:
        """A map from int64 or string keys to int64, float or string values."""
        for part in (items.keys(), items.values()):
            if len({isinstance(item, str) for item in part}) > 1:
                raise TypeError("the keys, and the values, of a map must be all numbers or all strings")
        keys, values = (np.array(list(part)) for part in (items.keys(), items.values()))
        for array, name in ((keys, "keys"), (values, "values")):
            if array.dtype.kind not in "iufU" or array.ndim != 1:
                raise TypeError(f"the {name} of a map must be numbers or strings, found {array.dtype}")
        return cls(_epona.OrtValue.ortvalue_from_map(keys, values))

    @classmethod
    def ortvalue_none(cls) -> OrtValue:
        """An optional value that is absent."""
        return cls(_epona.OrtValue.ortvalue_none())

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor: SparseTensor) -> OrtValue:
        """The value of a sparse tensor."""
        native = sparse_tensor if isinstance(sparse_tensor, NativeSparseTensor) else sparse_tensor._get_c_tensor()
        return OrtValue(SparseOrtValue(native))

    def as_sparse_tensor(self) -> SparseTensor:
        """The sparse tensor inside; RuntimeError for other values."""
        if not self.is_sparse_tensor():
            raise RuntimeError(f"only sparse tensors have a sparse form; this OrtValue is {self.data_type()}")
        return SparseTensor(self._ortvalue.as_sparse_tensor())

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Shares the memory of an object that has __dlpack__ (torch, jax, numpy, ...), or of a DLPack capsule."""
        return cls(_epona.OrtValue.from_dlpack(data), data)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule that shares this memory, or has a copy of it. Memory that must not be written is copied."""
        if self._read_only():
            if copy is False:
                raise BufferError("the memory of this OrtValue must not be written, which DLPack cannot express: copy it")
            copy = True
        return self._ortvalue.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def _read_only(self) -> bool:
        """Whether it shares the memory of an array that must not be written."""
        array = self._numpy_obj
        return isinstance(array, np.ndarray) and not array.flags.writeable and array.ctypes.data == self._ortvalue.data_ptr()

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the memory is, as DLPack numbers it: (1, 0) is the host."""
        return self._ortvalue.__dlpack_device__()

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares this memory."""
        return self._ortvalue.to_dlpack()

    def numpy(self) -> Any:
        """The value as numpy sees it: an array sharing this memory (a copy of a device's), a list, or a dict."""
        value = self._ortvalue.numpy()
        if self._read_only():
            value.flags.writeable = False
        return value

    def to_sequence(self) -> list[OrtValue]:
        """The items of a sequence."""
        return [OrtValue(item) for item in self._ortvalue.to_sequence()]

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
        """Where the memory is: "cpu", "cuda", ..."""
        return self._ortvalue.device_name()

    def device_id(self) -> int:
        """The index of that device."""
        return self._ortvalue.device_id()

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

    def update_inplace(self, data: np.ndarray | OrtValue) -> None:
        """Copies an array or OrtValue of the same type and size into this memory."""
        self._check_writable("update_inplace")
        self._ortvalue.update_inplace(data)


class OrtValueVector(list):
    """Native OrtValues in a row."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """Appends a native OrtValue, or the tensor of a DLPack capsule."""
        if not isinstance(value, _epona.OrtValue):
            value = _epona.OrtValue.from_dlpack(value, is_bool_tensor)
        self.append(value)

    def push_back_batch(self, tensors, data_ptrs, element_types, shapes, devices) -> None:
        """Appends tensors that the caller owns and keeps alive, given by address, type and shape."""
        for tensor in tensors:
            self.append(_epona.OrtValue.from_dlpack(tensor))

    def reserve(self, count: int) -> None:
        """Nothing to do: lists grow."""

    def shrink_to_fit(self) -> None:
        """Nothing to do."""

    def element_type_at(self, idx: int) -> int:
        """The element type of one value."""
        return self[idx].element_type()

    def dlpack_at(self, idx: int) -> Any:
        """A DLPack capsule of one value."""
        return self[idx].to_dlpack()

    def bool_tensor_indices(self) -> list[int]:
        """Which of them are tensors of bool."""
        return [i for i, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def to_dlpacks(self, to_tensor: Any = None) -> list[Any]:
        """DLPack capsules of all, given to `to_tensor` one by one when it is not None."""
        capsules = [value.to_dlpack() for value in self]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copies tensors into others of the same type and size."""
    if len(src) != len(dst):
        raise ValueError(f"copy_tensors: {len(src)} sources for {len(dst)} destinations")
    for source, destination in zip(src, dst):
        destination.update_inplace(source)
