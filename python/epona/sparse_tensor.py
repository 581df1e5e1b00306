"""SparseTensor: values with coordinates (COO), or with rows and columns (CSR)."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from epona.devices import OrtDevice

_TYPE_NAMES = {"float32": "float", "float64": "double"}


class OrtSparseFormat(enum.IntEnum):
    """How the positions of the values are stored."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class SparseCooView:
    """Coordinates of a COO tensor."""

    def __init__(self, indices: np.ndarray) -> None:
        self._indices = indices

    def indices(self) -> np.ndarray:
        """Linear positions [n], or coordinates [n, 2]."""
        return self._indices


class SparseCsrView:
    """Positions of a CSR tensor."""

    def __init__(self, inner: np.ndarray, outer: np.ndarray) -> None:
        self._inner, self._outer = inner, outer

    def inner(self) -> np.ndarray:
        """The column of every value."""
        return self._inner

    def outer(self) -> np.ndarray:
        """For each row where its values begin; one entry more than rows."""
        return self._outer


class SparseBlockSparseView:
    """Positions of a block-sparse tensor."""

    def __init__(self, indices: np.ndarray) -> None:
        self._indices = indices

    def indices(self) -> np.ndarray:
        """Block rows and columns [2, n]."""
        return self._indices


class NativeSparseTensor:
    """The content of a SparseTensor."""

    def __init__(self, kind: OrtSparseFormat, shape: Any, values: np.ndarray, positions: tuple[np.ndarray, ...]) -> None:
        self._format, self._values, self._positions = kind, np.asarray(values), positions
        self._shape = [int(dim) for dim in np.asarray(shape).ravel()]
        if any(dim < 0 for dim in self._shape):
            raise ValueError(f"a sparse tensor cannot have the shape {self._shape}")

    @staticmethod
    def sparse_coo_from_numpy(dense_shape, values, coo_indices, ort_device=None) -> NativeSparseTensor:
        """Values at linear positions [n] or coordinates [n, 2]."""
        indices = np.asarray(coo_indices, np.int64)
        count = np.asarray(values).size
        if indices.size not in (count, 2 * count):
            raise ValueError(f"{count} values need {count} linear positions or [{count}, 2] coordinates, got {indices.shape}")
        if indices.size == 2 * count and count:
            indices = indices.reshape(count, 2)
        tensor = NativeSparseTensor(OrtSparseFormat.ORT_SPARSE_COO, dense_shape, values, (indices,))
        tensor._check(tensor._linear(), int(np.prod(tensor._shape)))
        return tensor

    @staticmethod
    def sparse_csr_from_numpy(dense_shape, values, inner_indices, outer_indices, ort_device=None) -> NativeSparseTensor:
        """Values with their columns, and where each row begins."""
        inner, outer = (np.asarray(a, np.int64).ravel() for a in (inner_indices, outer_indices))
        tensor = NativeSparseTensor(OrtSparseFormat.ORT_SPARSE_CSRC, dense_shape, values, (inner, outer))
        count = tensor._values.size
        if len(tensor._shape) != 2 or outer.size != tensor._shape[0] + 1 or inner.size != count or outer[-1] != count:
            raise ValueError(
                f"a CSR tensor of shape {tensor._shape} with {count} values needs {count} inner and rows + 1 outer indices"
            )
        tensor._check(inner, tensor._shape[1])
        if np.any(np.diff(outer) < 0) or outer[0] != 0:
            raise ValueError("the outer indices of a CSR tensor must begin at 0 and not decrease")
        return tensor

    @staticmethod
    def blocksparse_from_numpy(dense_shape, values, indices, ort_device=None) -> NativeSparseTensor:
        """Square or oblong blocks of values [n, rows, columns] at block positions [2, n]."""
        positions = np.asarray(indices, np.int32)
        return NativeSparseTensor(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, dense_shape, values, (positions,))

    @staticmethod
    def _check(positions: np.ndarray, end: int) -> None:
        if positions.size and (positions.min() < 0 or positions.max() >= end):
            raise ValueError(f"a position of the sparse tensor is outside 0..{end - 1}")

    def _linear(self) -> np.ndarray:
        indices = self._positions[0]
        if indices.ndim == 2:
            if len(self._shape) != 2:
                raise ValueError(f"coordinates [n, 2] need a matrix, the shape is {self._shape}")
            return indices[:, 0] * self._shape[1] + indices[:, 1]
        return indices

    def to_dense(self) -> np.ndarray:
        """The same as an ordinary array."""
        dense = np.zeros(self._shape, self._values.dtype)
        if self._format == OrtSparseFormat.ORT_SPARSE_COO:
            dense.ravel()[self._linear()] = self._values.ravel()
        elif self._format == OrtSparseFormat.ORT_SPARSE_CSRC:
            inner, outer = self._positions
            dense[np.repeat(np.arange(len(outer) - 1), np.diff(outer)), inner] = self._values.ravel()
        else:
            rows, columns = self._values.shape[-2:]
            for block, row, column in zip(self._values, *self._positions[0]):
                dense[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns] = block
        return dense

    def values(self) -> np.ndarray:
        """The stored values."""
        return self._values

    def dense_shape(self) -> list[int]:
        """The dims of the whole tensor."""
        return list(self._shape)

    def data_type(self) -> str:
        """As in "sparse_tensor(float)"."""
        name = self._values.dtype.name
        return f"sparse_tensor({_TYPE_NAMES.get(name, name)})"

    def device_name(self) -> str:
        """Where the memory is: "cpu"."""
        return "cpu"

    @property
    def format(self) -> OrtSparseFormat:
        """How positions are stored."""
        return self._format

    def _view(self, kind: OrtSparseFormat, name: str) -> tuple[np.ndarray, ...]:
        if self._format != kind:
            raise RuntimeError(f"This sparse tensor does not contain {name} format; it has {self._format.name}")
        return self._positions

    def get_coo_data(self) -> SparseCooView:
        """Its coordinates."""
        return SparseCooView(*self._view(OrtSparseFormat.ORT_SPARSE_COO, "COO"))

    def get_csrc_data(self) -> SparseCsrView:
        """Its columns and rows."""
        return SparseCsrView(*self._view(OrtSparseFormat.ORT_SPARSE_CSRC, "CSR"))

    def get_blocksparse_data(self) -> SparseBlockSparseView:
        """Its block positions."""
        return SparseBlockSparseView(*self._view(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, "BlockSparse"))

    def to_cuda(self, ort_device: Any) -> None:
        """Not possible here: sparse tensors live in host memory."""
        raise RuntimeError("sparse tensors cannot be copied to CUDA memory: Epona keeps them on the CPU")


class SparseOrtValue:
    """What an OrtValue of a sparse tensor holds."""

    def __init__(self, tensor: NativeSparseTensor) -> None:
        self._tensor = tensor

    def as_sparse_tensor(self) -> NativeSparseTensor:
        """The tensor."""
        return self._tensor

    def to_dense(self) -> np.ndarray:
        """The tensor as an ordinary array."""
        return self._tensor.to_dense()

    def data_type(self) -> str:
        """As in "sparse_tensor(float)"."""
        return self._tensor.data_type()

    def element_type(self) -> int:
        """The number of the element type in onnx.TensorProto.DataType."""
        from epona.ort_value import element_type_number

        return element_type_number(self._tensor.values().dtype)

    def shape(self) -> list[int]:
        """The dims of the whole tensor."""
        return self._tensor.dense_shape()

    def device_name(self) -> str:
        """Where the memory is: "cpu"."""
        return "cpu"

    def is_tensor(self) -> bool:
        """False: it is sparse."""
        return False

    def is_sparse_tensor(self) -> bool:
        """True."""
        return True

    def is_tensor_sequence(self) -> bool:
        """False: it is a tensor."""
        return False

    def has_value(self) -> bool:
        """True."""
        return True

    def _refuse(self, *args: Any) -> Any:
        raise RuntimeError(f"Only OrtValues that are Tensors can do this; this one is {self.data_type()}")

    numpy = data_ptr = tensor_size_in_bytes = update_inplace = to_dlpack = __dlpack__ = _refuse


class SparseTensor:
    """A sparse tensor, as run() gives and takes."""

    def __init__(self, sparse_tensor: NativeSparseTensor) -> None:
        if not isinstance(sparse_tensor, NativeSparseTensor):
            raise ValueError("SparseTensor wraps a native sparse tensor: use sparse_coo_from_numpy or sparse_csr_from_numpy")
        self._tensor = sparse_tensor

    def _get_c_tensor(self) -> NativeSparseTensor:
        return self._tensor

    @staticmethod
    def sparse_coo_from_numpy(
        dense_shape: np.ndarray, values: np.ndarray, coo_indices: np.ndarray, ort_device: OrtDevice
    ) -> SparseTensor:
        """Values at linear positions [n], or at coordinates [n, 2]."""
        return SparseTensor(NativeSparseTensor.sparse_coo_from_numpy(dense_shape, values, coo_indices, ort_device))

    @staticmethod
    def sparse_csr_from_numpy(
        dense_shape: np.ndarray,
        values: np.ndarray,
        inner_indices: np.ndarray,
        outer_indices: np.ndarray,
        ort_device: OrtDevice,
    ) -> SparseTensor:
        """Values with their columns, and where each row begins."""
        return SparseTensor(
            NativeSparseTensor.sparse_csr_from_numpy(dense_shape, values, inner_indices, outer_indices, ort_device)
        )

    def to_dense(self) -> np.ndarray:
        """The same as an ordinary array."""
        return self._tensor.to_dense()

    def values(self) -> np.ndarray:
        """The stored values."""
        return self._tensor.values()

    def as_coo_view(self) -> SparseCooView:
        """The positions of a COO tensor; RuntimeError for other formats."""
        return self._tensor.get_coo_data()

    def as_csrc_view(self) -> SparseCsrView:
        """The positions of a CSR tensor; RuntimeError for other formats."""
        return self._tensor.get_csrc_data()

    def as_blocksparse_view(self) -> SparseBlockSparseView:
        """The positions of a block-sparse tensor; RuntimeError for other formats."""
        return self._tensor.get_blocksparse_data()

    def to_cuda(self, ort_device: OrtDevice) -> SparseTensor:
        """RuntimeError: sparse tensors stay in host memory."""
        return self._tensor.to_cuda(ort_device)

    def format(self) -> OrtSparseFormat:
        """How positions are stored."""
        return self._tensor.format

    def dense_shape(self) -> list[int]:
        """The dims of the whole tensor."""
        return self._tensor.dense_shape()

    def data_type(self) -> str:
        """As in "sparse_tensor(float)"."""
        return self._tensor.data_type()

    def device_name(self) -> str:
        """Where the memory is: "cpu"."""
        return self._tensor.device_name()
