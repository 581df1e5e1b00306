#!/usr/bin/env python3
"""Run what README.md shows, literally, in a folder with a small model.onnx: test_readme.py BUILD.

The C++ snippet is built against the copy that test_example.py installed, with the CMake lines that the README gives.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper, parser

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(program CXX)
add_executable(program program.cc)
"""


def make_model(folder):
    rng = np.random.default_rng(7)
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[batch, 3, 224, 224] input) => (float[batch, 10] scores) <float[3, 10] w> {
          pooled = GlobalAveragePool(input)
          flat = Flatten(pooled)
          product = MatMul(flat, w)
          scores = Softmax(product)
        }""")
    model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((3, 10), np.float32), "w"))
    onnx.save(model, folder / "model.onnx")
    np.save(folder / "image.npy", rng.random((1, 3, 224, 224), np.float32))


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    build = (root / sys.argv[1]).resolve()
    readme = (root / "README.md").read_text()
    python = re.search(r"```python\n(.*?)```", readme, re.S)[1]
    cpp = re.search(r"```cpp\n(.*?)```", readme, re.S)[1]
    cmake = re.findall(r"^    ((?:find_package|target_link_libraries)\(.*\))$", readme, re.M)
    shell = re.findall(r"^    (epona .*?)(?:  +#.*)?$", readme, re.M)
    assert len(cmake) == 2 and len(shell) >= 6, (cmake, shell)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_model(folder)

        def run(*command, **kwargs):
            done = subprocess.run(command, cwd=folder, text=True, capture_output=True, **kwargs)
            assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            return done.stdout

        out = run(sys.executable, "-c", python)
        assert out.splitlines()[-1] == "(1, 10) ['CPUExecutionProvider']", out

        (folder / "program.cc").write_text(cpp)
        find, link = cmake
        (folder / "CMakeLists.txt").write_text(PROJECT.replace("add_executable", f"{find}\nadd_executable") + link + "\n")
        run("cmake", "-S", ".", "-B", "out", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={build / 'install'}")
        run("cmake", "--build", "out")
        assert len(run(folder / "out/program").split()) == 5

        environment = {**os.environ, "PATH": f"{build / 'bin'}:{os.environ['PATH']}"}
        for line in shell:
            run("bash", "-c", line, env=environment)
        assert np.load(folder / "out/scores.npy").shape == (1, 10)
        assert (folder / "optimized.onnx").stat().st_size > 0
    print(f"readme: {2 + len(shell)} passed, 0 failed")


if __name__ == "__main__":
    main()
