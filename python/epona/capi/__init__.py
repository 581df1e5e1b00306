"""Submodules that programs written for onnxruntime import."""

from epona.capi import onnxruntime_pybind11_state as onnxruntime_pybind11_state
