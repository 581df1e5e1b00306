"""Submodules that programs written for onnxruntime import."""
