"""IOBinding: values bound to the inputs and outputs of a session."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from epona import _epona
from epona.devices import device_argument
from epona.ort_value import OrtValue, OrtValueVector, element_type_number
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
        device = device_argument(device_type, device_id)
        self._iobinding.bind_input_at(name, element_type_number(element_type), list(shape), buffer_ptr, device)

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
        """Binds an output to a device, where each run allocates it, or to memory at an address.

        Where this machine has no such device the result is left in host memory, with a warning, as the session fell back to
        the CPU; when falling back is forbidden it is an error.
        """
        device = device_argument(device_type, device_id)
        if buffer_ptr is None:
            self._bind_output_to_device(name, device)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._iobinding.bind_output_at(name, element_type_number(element_type), list(shape), buffer_ptr, device)

    def _bind_output_to_device(self, name: str, device: tuple[str, int, int] | None) -> None:
        policy = self._session._fallback()
        if device is None or policy == "forbid":
            self._iobinding.bind_output(name, device)
            return
        try:
            _epona._find_device(device)
        except RuntimeError as error:
            if policy == "warn":
                warnings.warn(f"Output '{name}' is left in host memory. {error}", stacklevel=3)
            device = None
        self._iobinding.bind_output(name, device)

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
