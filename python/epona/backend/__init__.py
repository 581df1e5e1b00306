"""The onnx.backend interface: prepare(), run_model(), supports_device(). Needs the package onnx."""

from epona.backend.backend import OnnxRuntimeBackend

is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = OnnxRuntimeBackend.run_model
run_model = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device

__all__ = ["OnnxRuntimeBackend", "is_compatible", "prepare", "run", "run_model", "supports_device"]
