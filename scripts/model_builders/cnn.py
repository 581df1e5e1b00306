"""Convolution nets with random weights: ResNet-50 v1.5, MobileNetV2, MobileNetV3-Small, EfficientNet-B0."""

from .graph_builder import FLOAT, GraphBuilder

IMAGE = ["N", 3, 224, 224]


def _pool_flatten(g, x):
    return g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)


def _finish(g, x, features):
    g.classifier(x, features, 1000, out="output")
    g.output("output", FLOAT, ["N", 1000])
    return g


def resnet50(batch_norm=False):
    g = GraphBuilder("resnet50", seed=50)
    x = g.input("input", FLOAT, IMAGE)
    x = g.node("Relu", g.conv(x, 3, 64, 7, 2, 3, batch_norm=batch_norm))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    c_in = 64
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y = g.node("Relu", g.conv(x, c_in, width, 1, batch_norm=batch_norm))
            y = g.node("Relu", g.conv(y, width, width, 3, stride, batch_norm=batch_norm))
            y = g.conv(y, width, 4 * width, 1, batch_norm=batch_norm, scale=0.4)
            if block == 0:
                x = g.conv(x, c_in, 4 * width, 1, stride, pad=0, batch_norm=batch_norm, gain=1.0)
            x = g.node("Relu", g.node("Add", y, x))
            c_in = 4 * width
    return _finish(g, _pool_flatten(g, x), 2048)


def resnet50_bn():
    return resnet50(batch_norm=True)


def mobilenet_v2():
    g = GraphBuilder("mobilenet_v2", seed=2)

    def relu6(v):
        return g.node("Clip", v, g.scalar(0.0), g.scalar(6.0))

    x = g.input("input", FLOAT, IMAGE)
    x = relu6(g.conv(x, 3, 32, 3, 2))
    c_in = 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expand, c_out, blocks, first_stride in stages:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            hidden = c_in * expand
            y = x if expand == 1 else relu6(g.conv(x, c_in, hidden, 1))
            y = relu6(g.conv(y, hidden, hidden, 3, stride, group=hidden))
            y = g.conv(y, hidden, c_out, 1, gain=1.0)
            x = g.node("Add", x, y) if stride == 1 and c_in == c_out else y
            c_in = c_out
    x = relu6(g.conv(x, 320, 1280, 1))
    return _finish(g, _pool_flatten(g, x), 1280)


# kernel, expanded channels, output channels, squeeze-and-excite, hard-swish, stride
MOBILENET_V3_SMALL = (
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)


def mobilenet_v3_small():
    g = GraphBuilder("mobilenet_v3_small", seed=3)

    def hard_swish(v):
        return g.node("HardSwish", v)

    def relu(v):
        return g.node("Relu", v)

    def squeeze_excite(v, channels, squeezed):
        y = g.node("GlobalAveragePool", v)
        y = g.node("Relu", g.conv(y, channels, squeezed, 1))
        y = g.node("HardSigmoid", g.conv(y, squeezed, channels, 1, gain=1.0), alpha=1 / 6, beta=0.5)
        return g.node("Mul", y, v)

    x = g.input("input", FLOAT, IMAGE)
    x = hard_swish(g.conv(x, 3, 16, 3, 2))
    c_in = 16
    for kernel, expanded, c_out, excite, swish, stride in MOBILENET_V3_SMALL:
        activation = hard_swish if swish else relu
        y = x if expanded == c_in else activation(g.conv(x, c_in, expanded, 1))
        y = activation(g.conv(y, expanded, expanded, kernel, stride, group=expanded))
        if excite:
            y = squeeze_excite(y, expanded, (expanded // 4 + 7) // 8 * 8)
        y = g.conv(y, expanded, c_out, 1, gain=1.0)
        x = g.node("Add", y, x) if stride == 1 and c_in == c_out else y
        c_in = c_out
    x = hard_swish(g.conv(x, 96, 576, 1))
    x = _pool_flatten(g, x)
    w = g.weight(g.normal(1024, 576, std=0.05))
    b = g.weight(g.normal(1024, std=0.02))
    x = hard_swish(g.node("Gemm", x, w, b, transB=1))
    return _finish(g, x, 1024)


def efficientnet_b0():
    g = GraphBuilder("efficientnet_b0", seed=4)

    def swish(v):
        return g.node("Mul", v, g.node("Sigmoid", v))

    def squeeze_excite(v, channels, squeezed):
        y = g.node("GlobalAveragePool", v)
        y = swish(g.conv(y, channels, squeezed, 1))
        y = g.node("Sigmoid", g.conv(y, squeezed, channels, 1, gain=1.0))
        return g.node("Mul", y, v)

    x = g.input("input", FLOAT, IMAGE)
    x = swish(g.conv(x, 3, 32, 3, 2))
    c_in = 32
    stages = (
        (1, 3, 1, 16, 1),
        (6, 3, 2, 24, 2),
        (6, 5, 2, 40, 2),
        (6, 3, 2, 80, 3),
        (6, 5, 1, 112, 3),
        (6, 5, 2, 192, 4),
        (6, 3, 1, 320, 1),
    )
    for expand, kernel, first_stride, c_out, blocks in stages:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            hidden = c_in * expand
            y = x if expand == 1 else swish(g.conv(x, c_in, hidden, 1))
            y = swish(g.conv(y, hidden, hidden, kernel, stride, group=hidden))
            y = squeeze_excite(y, hidden, max(1, c_in // 4))
            y = g.conv(y, hidden, c_out, 1, gain=1.5)
            x = g.node("Add", y, x) if stride == 1 and c_in == c_out else y
            c_in = c_out
    x = swish(g.conv(x, 320, 1280, 1))
    return _finish(g, _pool_flatten(g, x), 1280)
