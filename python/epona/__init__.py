"""Epona runs ONNX models."""

from epona._epona import __version__

__all__ = ["__version__"]
