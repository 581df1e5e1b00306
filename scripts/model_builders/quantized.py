"""int8 models made from the float ones by onnxruntime's quantiser, calibrated on fixed random images."""

import os
import tempfile

import numpy as np
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

IMAGES = 4


class RandomImages(CalibrationDataReader):
    def __init__(self):
        random = np.random.default_rng(7)
        shape = (1, 3, 224, 224)
        self._feeds = iter([{"input": random.standard_normal(shape, dtype=np.float32)} for _ in range(IMAGES)])

    def get_next(self):
        return next(self._feeds, None)


def _static(source, target, quant_format, activations):
    with tempfile.TemporaryDirectory() as folder:
        prepared = os.path.join(folder, "prepared.onnx")
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            target,
            RandomImages(),
            quant_format=quant_format,
            per_channel=True,
            activation_type=activations,
            weight_type=QuantType.QInt8,
        )


def qdq_u8s8(source, target):
    _static(source, target, QuantFormat.QDQ, QuantType.QUInt8)


def qdq_s8s8(source, target):
    _static(source, target, QuantFormat.QDQ, QuantType.QInt8)


def qoperator(source, target):
    _static(source, target, QuantFormat.QOperator, QuantType.QUInt8)


def dynamic_int8(source, target):
    quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)
