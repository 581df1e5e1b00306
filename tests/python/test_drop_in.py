"""Epona under the name onnxruntime, in processes of their own."""

import os
import pathlib
import subprocess
import sys

import pytest

import epona

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = pathlib.Path(epona.__file__).parent.parent

CHECKS = """
import importlib, importlib.metadata, pickle, sys
import numpy as np
import onnxruntime as ort
import onnxruntime.capi.onnxruntime_pybind11_state as C
from onnxruntime.capi import _pybind_state, onnxruntime_inference_collection, onnxruntime_validation
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from onnxruntime.capi._pybind_state import OrtDevice, get_available_providers
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession, OrtValue
from onnxruntime.backend import prepare, supports_device
import onnxruntime.backend.backend
from onnx import parser
import epona
assert ort.InferenceSession is InferenceSession is epona.InferenceSession
assert C.InvalidArgument is InvalidArgument and InvalidArgument.__module__ == "onnxruntime.capi.onnxruntime_pybind11_state"
assert ort.__version__ == ort.get_version_string() == "1.32.0" == importlib.metadata.version("onnxruntime")
assert importlib.metadata.metadata("onnxruntime")["Name"] == "onnxruntime"
model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg(x) }')
session = ort.InferenceSession(model.SerializeToString(), providers=ort.get_available_providers())
x = np.array([1, -2], np.float32)
assert session.run(None, {"x": x})[0].tolist() == [-1, 2]
assert session._sess is not None and OrtValue.ortvalue_from_numpy(x)._ortvalue is not None
try:
    session.run(None, {"x": x[:1]})
except InvalidArgument as error:
    assert pickle.loads(pickle.dumps(error)).args == error.args
else:
    raise AssertionError
assert supports_device("CPU") and not supports_device("CUDA:1")
rep = prepare(model)
assert rep.run([x])[0].tolist() == [-1, 2] and rep.run(x).tolist() == [-1, 2]
try:
    import onnxruntime.quantization
except ModuleNotFoundError as error:
    assert "Epona stands in for onnxruntime" in str(error) and error.name == "onnxruntime.quantization"
else:
    raise AssertionError
assert importlib.import_module("onnxruntime.capi") is sys.modules["epona.capi"]
assert importlib.reload(importlib.import_module("onnxruntime.capi.build_and_package_info")).package_name == "onnxruntime"
"""


def run(*arguments, path=PACKAGE, cwd=None):
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | {"PYTHONPATH": str(path)}
    return subprocess.run([sys.executable, *map(str, arguments)], env=env, cwd=cwd, capture_output=True, text=True, timeout=120)


def test_function():
    result = run("-c", f"import epona; import types; assert epona.as_onnxruntime() is epona.as_onnxruntime()\n{CHECKS}")
    assert result.returncode == 0, result.stderr


def test_module_runs_a_script(tmp_path):
    (tmp_path / "helper.py").write_text("word = 'found'")
    script = tmp_path / "script.py"
    script.write_text(
        CHECKS + "import helper\nassert __name__ == '__main__' and sys.argv[1:] == ['a', '--b']\nprint(helper.word)\nsys.exit(3)\n"
    )
    result = run("-m", "epona.as_onnxruntime", script, "a", "--b")
    assert result.returncode == 3 and result.stdout == "found\n", result.stderr


def test_module_runs_a_module(tmp_path):
    (tmp_path / "program.py").write_text("import onnxruntime, sys\nprint(onnxruntime.__version__, sys.argv[1:])")
    result = run("-m", "epona.as_onnxruntime", "-m", "program", "x", cwd=tmp_path)
    assert result.stdout == "1.32.0 ['x']\n", result.stderr
    assert run("-m", "epona.as_onnxruntime").returncode == 2


def test_package(tmp_path):
    """compat/onnxruntime on the path; its metadata is only there when it is installed (tests/clients)."""
    checks = CHECKS.replace(' == importlib.metadata.version("onnxruntime")', "")
    checks = "\n".join(line for line in checks.splitlines() if "metadata.metadata" not in line)
    result = run("-c", checks, path=f"{ROOT / 'compat/onnxruntime'}{os.pathsep}{PACKAGE}")
    assert result.returncode == 0, result.stderr


def test_too_late():
    result = run("-c", "import onnxruntime, epona; epona.as_onnxruntime()")
    assert "RuntimeError: onnxruntime is imported already" in result.stderr


def test_module_and_function_of_one_name():
    result = run("-c", "import epona.as_onnxruntime; import epona; print(epona.as_onnxruntime().__name__)")
    assert result.stdout == "onnxruntime\n", result.stderr


@pytest.mark.parametrize("name", ["onnxruntime.tools", "onnxruntime.transformers", "onnxruntime.datasets"])
def test_absent_submodules_say_why(name):
    result = run("-c", f"import epona; epona.as_onnxruntime(); import {name}")
    assert f"No module named '{name}': Epona stands in" in result.stderr
