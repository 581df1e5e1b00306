"""LoRA adapters: files of named tensors that a run feeds to a model."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from epona import _epona
from epona.ort_value import OrtValue

# The file is a FlatBuffer (https://flatbuffers.dev/internals) with the identifier TORT:
# Adapter { format_version, adapter_version, model_version: int32; parameters: [Parameter] }
# Parameter { name: string; dims: [int64]; data_type: int32; raw_data: [uint8] }
_IDENTIFIER = b"TORT"


class _Reader:
    """Reads tables of a FlatBuffer; everything is checked, as files come from outside."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, form: str, at: int) -> int:
        if at < 0 or at + struct.calcsize(form) > len(self.data):
            raise ValueError("the adapter file is damaged: an offset leads outside")
        return struct.unpack_from(form, self.data, at)[0]

    def field(self, table: int, index: int) -> int:
        """Where a field is; 0 when it is absent."""
        vtable = table - self.number("<i", table)
        if 4 + 2 * index >= self.number("<H", vtable):
            return 0
        offset = self.number("<H", vtable + 4 + 2 * index)
        return table + offset if offset else 0

    def int32(self, table: int, index: int) -> int:
        at = self.field(table, index)
        return self.number("<i", at) if at else 0

    def vector(self, table: int, index: int, size: int) -> tuple[int, int]:
        """Where the elements begin, and how many there are."""
        at = self.field(table, index)
        if not at:
            return 0, 0
        start = at + self.number("<I", at)
        count = self.number("<I", start)
        if start + 4 + count * size > len(self.data):
            raise ValueError("the adapter file is damaged: it ends within a value")
        return start + 4, count


def _read(data: bytes) -> tuple[dict[str, OrtValue], int, int, int]:
    if len(data) < 8 or data[4:8] != _IDENTIFIER:
        raise ValueError("this is not an adapter file: the identifier TORT is missing")
    reader = _Reader(data)
    root = reader.number("<I", 0)
    parameters = {}
    first, count = reader.vector(root, 3, 4)
    for i in range(count):
        table = first + 4 * i + reader.number("<I", first + 4 * i)
        at, size = reader.vector(table, 0, 1)
        name = data[at : at + size].decode()
        at, rank = reader.vector(table, 1, 8)
        dims = list(struct.unpack_from(f"<{rank}q", data, at))
        at, size = reader.vector(table, 3, 1)
        value = OrtValue.ortvalue_from_shape_and_type(dims, reader.int32(table, 2))
        if value.tensor_size_in_bytes() != size:
            raise ValueError(f"adapter parameter '{name}' has {size} bytes, its shape {dims} needs another number")
        if size:
            raw = np.frombuffer(data, np.uint8, size, at)
            _epona.OrtValue.from_dlpack(_bytes_of(value)).update_inplace(raw)
        parameters[name] = value
    return parameters, reader.int32(root, 0), reader.int32(root, 1), reader.int32(root, 2)


def _bytes_of(value: OrtValue) -> np.ndarray:
    """The memory of a tensor as bytes."""
    import ctypes

    size = value.tensor_size_in_bytes()
    array = np.frombuffer((ctypes.c_uint8 * size).from_address(value.data_ptr()), np.uint8)
    return array


class _Writer:
    """Writes a FlatBuffer front to back: every offset leads to something written later."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, to: int, ahead: int = 0) -> None:
        self.data += bytes(-(len(self.data) + ahead) % to)

    def point(self, at: int) -> None:
        """Makes the offset at a place lead to the end."""
        struct.pack_into("<I", self.data, at, len(self.data) - at)

    def table(self, kinds: str) -> list[int]:
        """A table with fields of 4 bytes each; returns where they are."""
        self.align(4, 4 + 2 * len(kinds))
        vtable = len(self.data)
        self.data += struct.pack("<HH", 4 + 2 * len(kinds), 4 + 4 * len(kinds))
        self.data += struct.pack(f"<{len(kinds)}H", *range(4, 4 + 4 * len(kinds), 4))
        start = len(self.data)
        self.data += struct.pack("<i", start - vtable) + bytes(4 * len(kinds))
        return list(range(start + 4, start + 4 + 4 * len(kinds), 4))

    def vector(self, at: int, form: str, values: Any) -> int:
        """A vector that the offset at a place leads to; returns where its elements begin."""
        item = struct.calcsize("<" + form)
        self.align(max(4, item), 4)
        self.point(at)
        self.data += struct.pack("<I", len(values))
        start = len(self.data)
        self.data += bytes(values) if form == "B" else struct.pack(f"<{len(values)}{form}", *values)
        return start


def _write(parameters: dict[str, OrtValue], versions: tuple[int, int, int]) -> bytes:
    out = _Writer()
    out.data += bytes(4) + _IDENTIFIER
    fields = out.table("iiiv")
    struct.pack_into("<I", out.data, 0, fields[0] - 4)
    for at, version in zip(fields, versions):
        struct.pack_into("<i", out.data, at, version)
    first = out.vector(fields[3], "I", [0] * len(parameters))
    # Readers look parameters up by name in a sorted list.
    for i, (name, value) in enumerate(sorted(parameters.items())):
        if not value.is_tensor() or value.data_type() == "tensor(string)":
            raise ValueError(f"adapter parameter '{name}' must be a tensor of numbers, it is {value.data_type()}")
        at = first + 4 * i
        name_at, dims_at, type_at, data_at = out.table("vviv")
        struct.pack_into("<I", out.data, at, name_at - 4 - at)
        struct.pack_into("<i", out.data, type_at, value.element_type())
        out.vector(name_at, "B", name.encode())
        out.data += b"\0"
        out.vector(dims_at, "q", value.shape())
        # Tensors are read in place, so they begin where any element type may.
        out.align(8, 4)
        out.vector(data_at, "B", _bytes_of(value).tobytes() if value.tensor_size_in_bytes() else b"")
    return bytes(out.data)


class AdapterFormat:
    """An adapter file: named tensors and version numbers."""

    def __init__(self, adapter: Any = None) -> None:
        self._parameters: dict[str, OrtValue] = {}
        self._format_version, self._adapter_version, self._model_version = 1, 0, 0
        if adapter is not None:
            self._parameters, self._format_version, self._adapter_version, self._model_version = adapter

    @staticmethod
    def read_adapter(file_path: os.PathLike) -> AdapterFormat:
        """Reads a file."""
        with open(file_path, "rb") as file:
            return AdapterFormat(_read(file.read()))

    def export_adapter(self, file_path: os.PathLike) -> None:
        """Writes a file."""
        with open(file_path, "wb") as file:
            file.write(_write(self._parameters, (self._format_version, self._adapter_version, self._model_version)))

    def get_format_version(self) -> int:
        """The version of the file's layout."""
        return self._format_version

    def set_adapter_version(self, adapter_version: int) -> None:
        """Sets the version of the adapter."""
        self._adapter_version = adapter_version

    def get_adapter_version(self) -> int:
        """The version of the adapter."""
        return self._adapter_version

    def set_model_version(self, model_version: int) -> None:
        """Sets the version of the model it is for."""
        self._model_version = model_version

    def get_model_version(self) -> int:
        """The version of the model it is for."""
        return self._model_version

    format_version = property(get_format_version, doc="The version of the file's layout.")
    adapter_version = property(get_adapter_version, set_adapter_version, doc="The version of the adapter.")
    model_version = property(get_model_version, set_model_version, doc="The version of the model it is for.")

    def set_parameters(self, params: dict[str, OrtValue]) -> None:
        """Sets the tensors."""
        self._parameters = dict(params)

    def get_parameters(self) -> dict[str, OrtValue]:
        """The tensors."""
        return dict(self._parameters)

    parameters = property(get_parameters, set_parameters, doc="The tensors.")


class LoraAdapter:
    """An adapter that runs can use: RunOptions.add_active_adapter."""

    def __init__(self) -> None:
        self._parameters: dict[str, OrtValue] = {}

    def Load(self, file_path: str) -> None:  # noqa: N802: the name that programs call
        """Reads a file."""
        try:
            self._parameters = AdapterFormat.read_adapter(file_path).get_parameters()
        except (OSError, ValueError) as error:
            raise RuntimeError(f"adapter file {file_path} cannot be loaded: {error}") from error

    def parameters(self) -> dict[str, OrtValue]:
        """The tensors."""
        return self._parameters
