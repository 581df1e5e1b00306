"""ModelCompiler: writes a model as its session would run it."""

from __future__ import annotations

import enum
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from epona import _epona


class OrtCompileApiFlags(enum.IntFlag):
    """Switches of ModelCompiler."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtExternalInitializerInfo:
    """Where an initialiser lies in a file."""

    def __init__(self, filepath: str, file_offset: int, byte_size: int) -> None:
        self._values = str(filepath), int(file_offset), int(byte_size)

    @property
    def filepath(self) -> str:
        """The file."""
        return self._values[0]

    @property
    def file_offset(self) -> int:
        """Where in the file."""
        return self._values[1]

    @property
    def byte_size(self) -> int:
        """How many bytes."""
        return self._values[2]


class ModelCompiler:
    """Writes a model after the passes of an optimisation level.

    No provider of this version puts compiled parts into models, so nodes are written as they are.
    """

    def __init__(
        self,
        sess_options: _epona.SessionOptions,
        input_model_path_or_bytes: str | os.PathLike | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: _epona.GraphOptimizationLevel = _epona.GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: Callable[..., Any] | None = None,
    ) -> None:
        """Takes a model as a file name or bytes, and the options of the session it is for."""
        if external_initializers_file_path is not None or get_initializer_location_func is not None:
            raise _epona.NotImplemented(
                "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : ModelCompiler keeps initialisers inside the model: an external"
                " file for them cannot be asked for"
            )
        if isinstance(input_model_path_or_bytes, (str, os.PathLike)):
            if not os.path.exists(input_model_path_or_bytes):
                raise ValueError(f"model file {os.fspath(input_model_path_or_bytes)!r} does not exist")
        elif not isinstance(input_model_path_or_bytes, bytes):
            raise TypeError(f"Unable to load from type '{type(input_model_path_or_bytes)}'")
        self._source = input_model_path_or_bytes
        self._options, self._flags, self._level = sess_options, OrtCompileApiFlags(flags), graph_optimization_level

    def _write(self, path: str) -> None:
        from epona.inference_session import InferenceSession

        if self._flags & OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED:
            raise _epona.Fail(
                "[ONNXRuntimeError] : 1 : FAIL : Unable to compile any nodes. No provider of this session compiles models"
                " ahead of time."
            )
        options = self._options._clone()
        options.graph_optimization_level = self._level
        options.optimized_model_filepath = path
        InferenceSession(self._source, options)

    def compile_to_file(self, output_model_path: str | None = None) -> None:
        """Writes a file; by default the input's name with _ctx added."""
        if output_model_path is None:
            if isinstance(self._source, bytes):
                raise ValueError("compile_to_file needs a path when the model was given as bytes")
            source = pathlib.Path(self._source)
            output_model_path = str(source.with_name(source.stem + "_ctx.onnx"))
        if self._flags & OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS and os.path.exists(output_model_path):
            raise _epona.Fail(f"[ONNXRuntimeError] : 1 : FAIL : Output model file already exists: {output_model_path}")
        self._write(os.fspath(output_model_path))

    def compile_to_bytes(self) -> bytes:
        """The written model."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            self._write(path)
            return pathlib.Path(path).read_bytes()

    def compile_to_stream(self, write_function: Callable[[bytes], None]) -> None:
        """Gives the written model to a function, piece by piece."""
        data = self.compile_to_bytes()
        for start in range(0, len(data), 1 << 20):
            write_function(data[start : start + (1 << 20)])

    def set_ep_context_binary_information(self, output_directory: str | os.PathLike, model_name: str) -> None:
        """Where providers would put compiled data; none of this version does."""
        if not os.fspath(output_directory) or not model_name:
            raise ValueError("set_ep_context_binary_information needs a folder and a name")

    def set_ep_context_data_write_func(self, write_func: Callable[..., None]) -> None:
        """Takes a function for compiled data, of which there is none in this version."""
        if not callable(write_func):
            raise TypeError("set_ep_context_data_write_func needs a function")

    def clear_ep_context_data_write_func(self) -> None:
        """Forgets that function."""
