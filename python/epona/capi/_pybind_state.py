"""The native names, under a second name that programs import."""

from epona.capi.onnxruntime_pybind11_state import *  # noqa: F403
from epona.capi.onnxruntime_pybind11_state import __all__  # noqa: F401
