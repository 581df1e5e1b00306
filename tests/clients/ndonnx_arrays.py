"""ndonnx and spox: build graphs from array programs, propagate constants through onnxruntime, run the models."""
import ndonnx as ndx
import numpy as np
import onnxruntime as ort
import spox.opset.ai.onnx.v20 as op
from spox import Tensor, argument, build

a = ndx.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
b = ndx.asarray(np.array([1, -2, 3, -4], np.int64))
print("eager", ndx.sum(a * b, axis=1).unwrap_numpy().tolist(), (a > 5).unwrap_numpy().sum())
print("sorted", ndx.sort(b).unwrap_numpy().tolist(), ndx.cumulative_sum(b).unwrap_numpy().tolist(), ndx.unique_values(b % 3).unwrap_numpy().tolist())
s = ndx.asarray(np.array(["x", "yy", "x"]))
print("strings", (s == ndx.asarray(np.array("x"))).unwrap_numpy().tolist())

x = ndx.argument(shape=("N", 4), dtype=ndx.float32)
mean = ndx.mean(x, axis=0)
y = ndx.where(x > mean, x - mean, ndx.zeros_like(x))
model = ndx.build({"x": x}, {"y": y, "n": ndx.asarray(x.dynamic_shape)[0]})
session = ort.InferenceSession(model.SerializeToString())
for n in (1, 3, 5):
    data = np.sin(np.arange(n * 4, dtype=np.float32)).reshape(n, 4)
    out = dict(zip((o.name for o in session.get_outputs()), session.run(None, {i.name: data for i in session.get_inputs()})))
    print(n, {k: np.round(v, 4).tolist() for k, v in sorted(out.items())})

u, v = argument(Tensor(np.float32, ("N",))), argument(Tensor(np.float32, ("N",)))
(loop,) = op.loop(op.const(np.array(3, np.int64)), v_initial=[u], body=lambda i, c, t: [c, op.add(op.mul(t, v), op.cast(i, to=np.float32))])
model = build({"u": u, "v": v}, {"loop": loop, "const": op.add(op.const([1.0, 2.0]), op.const([10.0, 20.0]))})
session = ort.InferenceSession(model.SerializeToString())
print("loop", [r.tolist() for r in session.run(["loop", "const"], {"u": np.array([1, 2], "f"), "v": np.array([2, 3], "f")})])
