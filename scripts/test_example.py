#!/usr/bin/env python3
"""Install into a scratch prefix, build examples/cpp against it through find_package(epona), compare with numpy."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper, parser


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    build = (root / sys.argv[1]).resolve()
    prefix, out = build / "install", build / "example"
    shutil.rmtree(prefix, ignore_errors=True)
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "--install", build, "--prefix", prefix, "--component", "sdk"], **quiet)
    configure = ["cmake", "-S", root / "examples/cpp", "-B", out, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run([*configure, f"-DCMAKE_PREFIX_PATH={prefix}"], **quiet)
    subprocess.run(["cmake", "--build", out], **quiet)

    rng = np.random.default_rng(1234)
    weights, bias = rng.standard_normal((8, 5), np.float32), rng.standard_normal(5, np.float32)
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n, 8] x) => (float[n, 5] y) <float[8, 5] w, float[5] b> {
          h = Gemm(x, w, b)
          y = Softmax(h)
        }""")
    model.graph.initializer.extend([numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")])
    onnx.save(model, out / "model.onnx")
    run = subprocess.run([out / "run_model", out / "model.onnx"], check=True, text=True, stdout=subprocess.PIPE)
    logits = np.arange(8, dtype=np.float32) / 8 @ weights + bias
    want = np.exp(logits - logits.max())
    want /= want.sum()
    got = np.array(run.stdout.split(), np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-4)
    missing = subprocess.run([out / "run_model", out / "absent.onnx"], text=True, stderr=subprocess.PIPE)
    assert missing.returncode == 1 and "absent.onnx" in missing.stderr, missing
    print("example: 2 passed, 0 failed")


if __name__ == "__main__":
    main()
