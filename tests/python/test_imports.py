"""Epona beside packages that bring their own protobuf, thread pool and ONNX registry, imported in every order."""

import importlib.util
import itertools
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
# torch is not among the requirements: its orders are skipped where it is not installed.
ORDERS = [order for some in (["onnxruntime"], ["torch"], ["onnxruntime", "torch"])
          for order in itertools.permutations(["epona", "onnx", *some])]

# Each package does some work, in the order in which it was imported.
PROGRAM = """
import {imports}
import numpy as np
model, order = {model!r}, {order!r}
x = np.random.default_rng(0).standard_normal((96, 96), np.float32)
weight = np.eye(96, dtype=np.float32) * 2
for name in order:
    if name == "onnx":
        onnx.checker.check_model(onnx.load(model), full_check=True)
        continue
    if name == "torch":
        y = torch.relu(torch.from_numpy(x) @ torch.from_numpy(weight)).numpy()
    else:
        package = globals()[name]
        (y,) = package.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {{"x": x}})
    np.testing.assert_allclose(y, np.maximum(x * 2, 0), rtol=1e-6)
print("done")
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("imports") / "model.onnx"
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 96] x) => (float[N, 96] y) { p = MatMul(x, w) y = Relu(p) }""")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(96, dtype=np.float32) * 2, "w"))
    onnx.save(proto, path)
    return str(path)


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_import_order(order, model):
    for name in order:
        if not importlib.util.find_spec(name):
            pytest.skip(f"{name} is not installed")
    program = PROGRAM.format(imports=", ".join(order), order=order, model=model)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=900)
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
