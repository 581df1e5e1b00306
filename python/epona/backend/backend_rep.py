"""A prepared model, as onnx.backend sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.backend.base import BackendRep

from epona.inference_session import InferenceSession


class OnnxRuntimeBackendRep(BackendRep):
    """A session that takes its inputs by position."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """Runs on a list of inputs in the model's order, or on one array."""
        from epona.backend.backend import run_options

        options = run_options(kwargs)
        metas = self._session.get_inputs()
        if isinstance(inputs, (list, tuple)):
            if len(inputs) != len(metas):
                raise ValueError(f"the model has {len(metas)} inputs, {len(inputs)} were given")
            feed = {meta.name: value for meta, value in zip(metas, inputs)}
            return self._session.run(None, feed, options)
        if len(metas) != 1:
            raise RuntimeError(f"the model has {len(metas)} inputs: give a list")
        result = self._session.run(None, {metas[0].name: inputs}, options)
        return result[0] if len(result) == 1 and isinstance(result[0], np.ndarray) else result
