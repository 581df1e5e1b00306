"""IOBinding: values bound to the inputs and outputs of a session."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from epona import _epona
from epona.devices import is_host
from epona.ort_value import OrtValue, OrtValueVector, element_type_number, require_host
from epona.sparse_tensor import SparseOrtValue

if TYPE_CHECKING:
    from epona.session import Session


class IOBinding:
    """Values bound to a session: names, types and ranks are checked when they are bound, and what is bound is kept alive.

    An output bound to memory is written there. An output bound without memory gets new memory in every run, so that its
    shape may change and results of earlier runs stay as they are.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._iobinding = _epona.SessionIOBinding(session._session)

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array in host memory; it is not copied when it is contiguous."""
        if not hasattr(arr_on_cpu, "dtype"):
            raise RuntimeError(f"Unable to create OrtValue from the given python object for input '{name}': {type(arr_on_cpu)}")
        self._iobinding.bind_input(name, arr_on_cpu)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds memory at an address. The caller keeps it alive until the last run."""
        if not is_host(device_type):
            raise RuntimeError(
                f"Error when binding input: '{name}' is on {device_type}:{device_id}, and no provider for that device is"
                " available here"
            )
        self._iobinding.bind_input_at(name, element_type_number(element_type), list(shape), buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an OrtValue."""
        native = ortvalue._get_c_value()
        if isinstance(native, SparseOrtValue):
            self._iobinding.bind_input(name, native.to_dense())
        else:
            self._iobinding.bind_ortvalue_input(name, native)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to a device, where each run allocates it, or to memory at an address."""
        host = is_host(device_type)
        if buffer_ptr is None:
            if not host:
                warnings.warn(
                    f"Output '{name}' was bound to {device_type}:{device_id}; no provider for that device is available"
                    " here, so the result is in host memory.",
                    stacklevel=2,
                )
            self._iobinding.bind_output(name)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        require_host(device_type, device_id)
        self._iobinding.bind_output_at(name, element_type_number(element_type), list(shape), buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an output to the memory of an OrtValue, which must have the output's shape in every run."""
        ortvalue._check_writable(f"output '{name}'")
        self._iobinding.bind_ortvalue_output(name, ortvalue._get_c_value())

    def synchronize_inputs(self) -> None:
        """Waits until copies of bound inputs are done."""
        self._iobinding.synchronize_inputs()

    def synchronize_outputs(self) -> None:
        """Waits until bound outputs are written."""
        self._iobinding.synchronize_outputs()

    def get_outputs(self) -> list[OrtValue]:
        """The results of the last run, in the order in which outputs were bound."""
        return [OrtValue(value) for value in self._iobinding.get_outputs()]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """The same as native values."""
        return OrtValueVector(self._iobinding.get_outputs())

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The results of the last run as arrays."""
        return self._iobinding.copy_outputs_to_cpu()

    def clear_binding_inputs(self) -> None:
        """Forgets all bound inputs."""
        self._iobinding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        """Forgets all bound outputs."""
        self._iobinding.clear_binding_outputs()
