"""int4 weights (MatMulNBits, and DequantizeLinear of int4) and fp16 models, made from the float ones."""

import logging

import onnx
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16


def _process(quantizer, target):
    # The quantiser logs two lines a node.
    logging.getLogger("onnxruntime.quantization.matmul_nbits_quantizer").setLevel(logging.ERROR)
    quantizer.process()
    quantizer.model.save_model_to_file(target)


def matmul_nbits(source, target):
    _process(MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True, accuracy_level=4), target)


def int4_qdq(source, target):
    config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, quant_format=QuantFormat.QDQ)
    _process(MatMulNBitsQuantizer(onnx.load(source), algo_config=config), target)


def fp16(source, target):
    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)
