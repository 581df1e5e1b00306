"""A small builder of ONNX graphs with random weights: the same seed gives the same bytes."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class GraphBuilder:
    """Collects nodes, initialisers, inputs and outputs in the order of the calls, then makes a model.

    Names come from counters and weights from one random stream, so the order of the calls is part of the result.
    """

    def __init__(self, name, seed=0, opset=17, ir_version=None):
        self.name = name
        self.opset = opset
        self.ir_version = ir_version or (8 if opset <= 18 else 10)
        self.random = np.random.default_rng(seed)
        self.nodes = []
        self.initializers = []
        self.inputs = []
        self.outputs = []
        self._node_count = 0
        self._constants = {}

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name, dtype, shape):
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def weight(self, array, name=None):
        name = name or f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def constant(self, value, dtype=np.int64):
        """An initialiser shared by all uses of the same value."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(array, f"c{len(self._constants)}")
        return self._constants[key]

    def scalar(self, value):
        return self.constant(value, np.float32)

    def node(self, op, *inputs, out=None, output_count=1, **attributes):
        """Appends a node; returns its output name, or the list of them where there are several."""
        self._node_count += 1
        name = f"{op}_{self._node_count}"
        if isinstance(out, list):
            outputs = out
        elif out:
            outputs = [out]
        elif output_count == 1:
            outputs = [name + "_o"]
        else:
            outputs = [f"{name}_o{j}" for j in range(output_count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=name, domain="", **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def normal(self, *shape, std=1.0):
        return self.random.standard_normal(shape, dtype=np.float32) * np.float32(std)

    def conv(self, x, c_in, c_out, kernel, stride=1, pad=None, group=1, batch_norm=False, gain=2.0, scale=1.0):
        """Square convolution with He-style weights: `gain` over the fan-in is the variance."""
        pad = kernel // 2 if pad is None else pad
        fan_in = c_in // group * kernel * kernel
        std = (gain / fan_in) ** 0.5 * scale
        inputs = [x, self.weight(self.normal(c_out, c_in // group, kernel, kernel, std=std))]
        if not batch_norm:
            inputs.append(self.weight(self.normal(c_out, std=0.02)))
        y = self.node(
            "Conv",
            *inputs,
            kernel_shape=[kernel, kernel],
            strides=[stride] * 2,
            pads=[pad, pad] * 2,
            group=group,
            dilations=[1, 1],
        )
        return self.batch_norm(y, c_out) if batch_norm else y

    def batch_norm(self, x, channels):
        scale = self.weight(1 + self.normal(channels, std=0.05))
        bias = self.weight(self.normal(channels, std=0.02))
        mean = self.weight(self.normal(channels, std=0.02))
        variance = self.weight(np.abs(1 + self.normal(channels, std=0.05)).astype(np.float32))
        return self.node("BatchNormalization", x, scale, bias, mean, variance, epsilon=1e-5)

    def linear(self, x, c_in, c_out, std=0.02, bias=True):
        y = self.node("MatMul", x, self.weight(self.normal(c_in, c_out, std=std)))
        return self.node("Add", y, self.weight(self.normal(c_out, std=0.02))) if bias else y

    def classifier(self, x, features, classes, out):
        """Gemm with a transposed weight, as exporters write the last layer."""
        w = self.weight(self.normal(classes, features, std=0.02))
        b = self.weight(self.normal(classes, std=0.02))
        self.node("Gemm", x, w, b, transB=1, out=out)

    def layer_norm(self, x, size, epsilon=1e-12, primitive=False):
        gamma = self.weight(1 + self.normal(size, std=0.05))
        beta = self.weight(self.normal(size, std=0.02))
        if not primitive:
            return self.node("LayerNormalization", x, gamma, beta, axis=-1, epsilon=epsilon)
        mean = self.reduce_mean(x)
        centred = self.node("Sub", x, mean)
        variance = self.reduce_mean(self.node("Pow", centred, self.scalar(2.0)))
        deviation = self.node("Sqrt", self.node("Add", variance, self.scalar(epsilon)))
        scaled = self.node("Mul", self.node("Div", centred, deviation), gamma)
        return self.node("Add", scaled, beta)

    def reduce_mean(self, x):
        """Mean over the last axis, kept; the axes moved from attribute to input in opset 18."""
        if self.opset < 18:
            return self.node("ReduceMean", x, axes=[-1], keepdims=1)
        return self.node("ReduceMean", x, self.constant([-1]), keepdims=1)

    def gelu_erf(self, x):
        erf = self.node("Erf", self.node("Div", x, self.scalar(2**0.5)))
        product = self.node("Mul", x, self.node("Add", erf, self.scalar(1.0)))
        return self.node("Mul", product, self.scalar(0.5))

    def gelu_tanh(self, x):
        cube = self.node("Pow", x, self.scalar(3.0))
        inner = self.node("Add", x, self.node("Mul", cube, self.scalar(0.044715)))
        tanh = self.node("Tanh", self.node("Mul", inner, self.scalar((2 / np.pi) ** 0.5)))
        half = self.node("Mul", x, self.scalar(0.5))
        return self.node("Mul", half, self.node("Add", tanh, self.scalar(1.0)))

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="gen_scripts"
        )
        model.ir_version = self.ir_version
        return model

    def save(self, path):
        onnx.save(self.model(), path)
        onnx.checker.check_model(path)


FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL
