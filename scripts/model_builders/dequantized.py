"""Models that say in plain operators what a quantised model means: what an engine's answer is measured against.

float_twin: dynamically quantised and weight-only models without any rounding of activations. Engines find the scale
at run time and round differently, so none is the oracle of another. DynamicQuantizeLinear becomes the identity with
scale 1 and zero point 0; the integer products become float ones with the zero point already taken off the weights,
so the Cast and Mul that follow keep their meaning.

qdq_twin: QLinearConv and its like as DequantizeLinear, float operator, QuantizeLinear. Run without optimisation this
is exact; onnxruntime's own u8 x s8 product saturates at 16 bits on processors without VNNI.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Rewriter:
    def __init__(self, graph):
        self.graph = graph
        self.arrays = {tensor.name: tensor for tensor in graph.initializer}
        self.added = {}
        self.nodes = []

    def array(self, name):
        return numpy_helper.to_array(self.arrays[name])

    def add(self, name, array):
        if name not in self.added:
            self.added[name] = numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name)
        return name

    def emit(self, node, op, inputs, outputs=None, attributes=None):
        new = helper.make_node(op, inputs, outputs or list(node.output), name=node.name)
        new.attribute.extend(node.attribute if attributes is None else attributes)
        self.nodes.append(new)

    def zero_point(self, node, index, weight):
        if len(node.input) <= index or not node.input[index]:
            return np.float32(0)
        zero = self.array(node.input[index]).astype(np.float32)
        return zero.reshape(-1, *[1] * (weight.ndim - 1)) if zero.size > 1 and node.op_type == "ConvInteger" else zero

    def dynamic_quantize_linear(self, node):
        x, (y, scale, zero) = node.input[0], node.output
        self.emit(node, "Identity", [x], [y])
        self.add(scale, np.ones(()))
        self.add(zero, np.zeros(()))

    def integer_product(self, node):
        weight = self.array(node.input[1]).astype(np.float32)
        name = self.add(node.input[1] + "_float", weight - self.zero_point(node, 3, weight))
        self.emit(node, "Conv" if node.op_type == "ConvInteger" else "MatMul", [node.input[0], name])

    def dynamic_quantize_lstm(self, node):
        inputs = list(node.input)
        for index, scale, zero in ((1, 8, 9), (2, 10, 11)):
            weight = self.array(inputs[index]).astype(np.float32)
            # One scale for all, or one a direction, or one a direction and a column.
            directions = weight.shape[0]
            scales = self.array(inputs[scale]).reshape(-1, *([1] if weight.ndim == 3 else []))
            scales = scales.reshape(directions, 1, -1) if scales.size > 1 else scales.reshape(1, 1, 1)
            zeros = self.array(inputs[zero]).astype(np.float32)
            zeros = zeros.reshape(directions, 1, -1) if zeros.size > 1 else zeros.reshape(1, 1, 1)
            # The quantised weights are stored transposed.
            inputs[index] = self.add(inputs[index] + "_float", ((weight - zeros) * scales).transpose(0, 2, 1))
        inputs = inputs[:8]
        while inputs and not inputs[-1]:
            inputs.pop()
        self.emit(node, "LSTM", inputs)

    def matmul_nbits(self, node):
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        k, n, block = attributes["K"], attributes["N"], attributes["block_size"]
        if attributes.get("bits", 4) != 4 or len(node.input) > 3:
            raise NotImplementedError(f"{node.name}: only symmetric int4 weights")
        packed = self.array(node.input[1]).reshape(n, -1)
        low_first = np.stack([packed & 15, packed >> 4], axis=-1).reshape(n, -1, block).astype(np.float32) - 8
        weight = low_first * self.array(node.input[2]).reshape(n, -1, 1)
        name = self.add(node.input[1] + "_float", weight.reshape(n, -1)[:, :k].T)
        self.emit(node, "MatMul", [node.input[0], name], attributes=[])

    def bias_rounding(self, node):
        """A bias is brought to the integers of the product by Floor and Cast to int32; here it stays a float."""
        integer = node.op_type == "Cast" and helper.get_attribute_value(node.attribute[0]) == TensorProto.INT32
        if node.op_type == "Floor" or integer:
            self.emit(node, "Identity", list(node.input), attributes=[])
        else:
            self.nodes.append(node)

    def dequantize_linear(self, node):
        """Weights only: int4 in blocks along one axis, or int8."""
        if node.input[0] not in self.arrays:
            self.nodes.append(node)
            return
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
        weight = self.array(node.input[0]).astype(np.float32)

        def spread(parameter):
            if block:
                return np.repeat(parameter, block, axis=axis)[tuple(slice(0, size) for size in weight.shape)]
            return parameter.reshape([-1 if i == axis else 1 for i in range(weight.ndim)] if parameter.ndim else [])

        if len(node.input) > 2 and node.input[2]:
            weight = weight - spread(self.array(node.input[2]).astype(np.float32))
        self.add(node.output[0], weight * spread(self.array(node.input[1])))

    def dequantize(self, name, scale, zero, axis=0):
        out = f"{name}_{len(self.nodes)}_float"
        self.nodes.append(helper.make_node("DequantizeLinear", [name, scale, zero], [out], axis=axis))
        return out

    def requantize(self, node, op, inputs, scale, zero, attributes):
        result = node.output[0] + "_float"
        self.emit(node, op, inputs, [result], attributes)
        self.nodes.append(helper.make_node("QuantizeLinear", [result, scale, zero], list(node.output)))

    def int32_bias(self, name, x_scale, w_scale):
        bias = self.array(name).astype(np.float32) * self.array(x_scale) * self.array(w_scale)
        return self.add(f"{name}_{len(self.nodes)}_float", bias)

    def qlinear_conv(self, node):
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.input[:8]
        inputs = [self.dequantize(x, x_scale, x_zero), self.dequantize(w, w_scale, w_zero)]
        if len(node.input) > 8:
            inputs.append(self.int32_bias(node.input[8], x_scale, w_scale))
        self.requantize(node, "Conv", inputs, y_scale, y_zero, node.attribute)

    def q_gemm(self, node):
        a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = node.input
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        b = self.dequantize(b, b_scale, b_zero, axis=0 if transposed else 1)
        inputs = [self.dequantize(a, a_scale, a_zero), b, self.int32_bias(c, a_scale, b_scale)]
        self.requantize(node, "Gemm", inputs, y_scale, y_zero, node.attribute)

    def qlinear_add(self, node):
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.input
        inputs = [self.dequantize(a, a_scale, a_zero), self.dequantize(b, b_scale, b_zero)]
        self.requantize(node, "Add", inputs, y_scale, y_zero, [])

    def qlinear_global_average_pool(self, node):
        x, x_scale, x_zero, y_scale, y_zero = node.input
        x = self.dequantize(x, x_scale, x_zero)
        self.requantize(node, "GlobalAveragePool", [x], y_scale, y_zero, [])

    def run(self, rules):
        for node in self.graph.node:
            if node.op_type in rules:
                rules[node.op_type](node)
            else:
                self.nodes.append(node)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        self.graph.initializer.extend(self.added.values())
        used = {name for node in self.nodes for name in node.input} | {o.name for o in self.graph.output}
        kept = [tensor for tensor in self.graph.initializer if tensor.name in used]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)
        del self.graph.value_info[:]


def float_twin(path):
    model = onnx.load(path)
    rewriter = _Rewriter(model.graph)
    rules = {
        "DynamicQuantizeLinear": rewriter.dynamic_quantize_linear,
        "MatMulInteger": rewriter.integer_product,
        "ConvInteger": rewriter.integer_product,
        "DynamicQuantizeLSTM": rewriter.dynamic_quantize_lstm,
        "DequantizeLinear": rewriter.dequantize_linear,
        "MatMulNBits": rewriter.matmul_nbits,
    }
    if any(node.op_type == "ConvInteger" for node in model.graph.node):
        rules.update(Floor=rewriter.bias_rounding, Cast=rewriter.bias_rounding)
    rewriter.run(rules)
    return model


def qdq_twin(path):
    model = onnx.load(path)
    rewriter = _Rewriter(model.graph)
    rewriter.run(
        {
            "QLinearConv": rewriter.qlinear_conv,
            "QGemm": rewriter.q_gemm,
            "QLinearAdd": rewriter.qlinear_add,
            "QLinearGlobalAveragePool": rewriter.qlinear_global_average_pool,
        }
    )
    return model
