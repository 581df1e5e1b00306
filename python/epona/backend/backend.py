"""The class that onnx.backend test runners take."""

from __future__ import annotations

import os
from typing import Any

from onnx import ModelProto
from onnx.backend.base import Backend

from epona._epona import RunOptions, SessionOptions
from epona.backend.backend_rep import OnnxRuntimeBackendRep
from epona.inference_session import InferenceSession


class OnnxRuntimeBackend(Backend):
    """Runs models through the interface of onnx.backend."""

    allowReleasedOpsetsOnly = bool(os.getenv("ALLOW_RELEASED_ONNX_OPSET_ONLY", "1") == "1")

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **kwargs: Any) -> bool:
        """Whether the model can be prepared for the device."""
        if device is not None and not cls.supports_device(device):
            return False
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:  # noqa: BLE001: any failure means no
            return False
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can run on a device, as "CPU" or "CUDA:1"."""
        return device.split(":")[0].upper() == "CPU"

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **kwargs: Any) -> OnnxRuntimeBackendRep:
        """Loads a ModelProto, the bytes or file name of one, or takes a session. `kwargs` set SessionOptions and RunOptions."""
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        if device is not None and not cls.supports_device(device):
            raise RuntimeError(f"Incompatible device expected '{device}', got 'CPU'")
        if isinstance(model, ModelProto):
            model = model.SerializeToString()
        options = SessionOptions()
        for key, value in kwargs.items():
            if hasattr(options, key):
                setattr(options, key, value)
        return OnnxRuntimeBackendRep(InferenceSession(model, options, providers=kwargs.get("providers")))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> Any:
        """Prepares and runs in one call."""
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str | None = None, outputs_info: Any = None, **kwargs: Any) -> Any:
        """Not possible: a node alone has no opset."""
        raise NotImplementedError("a node cannot be run by itself: put it into a model and call run_model")


def run_options(kwargs: dict[str, Any]) -> RunOptions:
    """RunOptions from those of the keywords that they have."""
    options = RunOptions()
    for key, value in kwargs.items():
        if hasattr(options, key):
            setattr(options, key, value)
    return options
