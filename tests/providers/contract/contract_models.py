"""Small models that together touch what a provider has to get right. name -> (text, initialisers, feeds, sizes of N)."""

import numpy as np
from onnx import numpy_helper, parser

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
W = {"kernel": (4, 3, 3, 3), "bias": (4,), "matrix": (8, 5)}

TEXTS = {
    "chain": "g (float[N,8] x) => (float[N,8] y) { a = Add(x, x)  b = Sigmoid(a)  y = Mul(b, x) }",
    "matmul": "g (float[N,8] x) => (float[N,5] y) { p = MatMul(x, matrix)  y = Relu(p) }",
    "conv": "g (float[N,3,6,6] x) => (float[N,4,6,6] y) { c = Conv<pads=[1,1,1,1]>(x, kernel, bias)  y = Relu(c) }",
    "two_outputs": "g (float[N,8] x) => (float[N,8] y, float[N,8] z) { y = Neg(x)  z = Abs(y) }",
    "output_is_input": "g (float[N,8] x) => (float[N,8] x, float[N,8] y) { y = Exp(x) }",
    "diamond": "g (float[N,8] x) => (float[N,8] y) { a = Neg(x)  b = Abs(a)  c = Exp(a)  d = Sub(b, c)  y = Add(d, a) }",
    "shapes": """g (float[N,8] x) => (float[M,4] y) {
      s = Shape(x)  total = ReduceProd<keepdims=1>(s)  four = Constant<value_ints=[4]>()  rows = Div(total, four)
      shape = Concat<axis=0>(rows, four)  t = Neg(x)  r = Reshape(t, shape)  y = Abs(r) }""",
    "data_dependent": """g (float[N,8] x) => (int64[2,K] y, float[K2] z) {
      a = Relu(x)  y = NonZero(a)  flat = Constant<value_ints=[-1]>()  f = Reshape(a, flat)
      zero = Constant<value_float=0.0>()  keep = Greater(f, zero)  z = Compress(f, keep) }""",
    "if": """g (float[N,8] x, bool c) => (float[N,8] y) { a = Neg(x)  y = If (c) <
      then_branch = yes () => (float[N,8] t) { u = Abs(a)  t = Add(u, x) },
      else_branch = no () => (float[N,8] e) { e = Exp(a) }> }""",
    "loop": """g (float[2,8] x) => (float[2,8] y) {
      n = Constant<value_int=3>()  go = Constant<value_ints=[1]>()  t = Cast<to=9>(go)  s = Squeeze(t)
      y = Loop (n, s, x) < body = step (int64 i, bool k, float[2,8] v) => (bool k2, float[2,8] v2)
        { k2 = Identity(k)  a = Abs(v)  v2 = Add(a, x) }> }""",
    "integers": "g (int64[N,8] x) => (int64[N,8] y) { a = Mul(x, x)  y = Sub(a, x) }",
    "strings": "g (string[N] x) => (string[N] y) { y = Identity(x) }",
    "scalar": "g (float x) => (float y) { a = Exp(x)  y = Sqrt(a) }",
}


def build(name):
    model = parser.parse_model(HEAD + TEXTS[name])
    read = {value for node in model.graph.node for value in node.input}
    rng = np.random.default_rng(1)
    for key, shape in W.items():
        if key in read:
            model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), key))
    return model.SerializeToString()


def feeds(name, n, rng):
    if name == "strings":
        return {"x": np.array([f"text {i}" for i in range(n)], object)}
    if name == "integers":
        return {"x": rng.integers(-9, 9, (n, 8))}
    if name == "scalar":
        return {"x": np.float32(rng.standard_normal()).reshape(())}
    shape = {"conv": (n, 3, 6, 6), "loop": (2, 8)}.get(name, (n, 8))
    feed = {"x": rng.standard_normal(shape).astype(np.float32)}
    if name == "if":
        feed["c"] = np.array(n % 2 == 0)
    return feed
