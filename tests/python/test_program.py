"""The `epona` program, used wrongly and rightly: exit codes, messages that name the remedy, files that numpy wrote."""

import json
import os

import epona
import numpy as np
import onnx
import program
import pytest
from onnx import TensorProto, helper

GRID = np.arange(6, dtype=np.float32).reshape(2, 3)


def write(path, op, names, element_type, dims):
    values = [helper.make_tensor_value_info(name, element_type, dims) for name in names]
    result = helper.make_tensor_value_info("y", element_type, dims)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], name="node")], "g", values, [result])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture()
def add(tmp_path):
    return write(tmp_path / "add ü.onnx", "Add", ["a", "b"], TensorProto.FLOAT, ["n", 3])


def usage_error(*words):
    done = program.run(*words)
    assert (done.returncode, done.stdout) == (2, ""), done
    return done.stderr


def fault(*words):
    done = program.run(*words)
    assert (done.returncode, done.stdout) == (1, ""), done
    return done.stderr


@pytest.mark.parametrize("command", ["run", "info", "explain", "bench", "optimize", "doctor", "providers"])
def test_every_command_has_help(command):
    for words in ([command, "--help"], ["help", command], [command, "x", "-h"]):
        done = program.run(*words)
        assert done.returncode == 0 and done.stdout.startswith(f"epona {command}") and not done.stderr
    assert command in program.run("--help").stdout
    assert f"epona {command} --help" in usage_error(command, "--nonsense")


def test_no_words_and_unknown_commands():
    done = program.run()
    assert done.returncode == 2 and "epona run MODEL" in done.stderr
    assert "Did you mean 'bench'?" in usage_error("bensh")


def test_wrong_usage_names_what_is_right(add):
    run = ("run", add, "--random")
    assert "no input has a symbolic dimension 'm'; they have: 'n'" in usage_error(*run, "--dim", "m=2")
    assert "no input has a symbolic dimension 'm'" in usage_error("explain", add, "--dim", "m=2")
    for value in ("-4", "x", "", "99999999999"):
        assert "--dim n needs a whole number" in usage_error(*run, "--dim", f"n={value}")
    assert "Did you mean 'constant_folding'?" in usage_error(*run, "--disable", "constant_foldin")
    assert "there is no pass 'zz'" in usage_error(*run, "--dump", "after=zz")
    assert "Did you mean 'CUDAExecutionProvider'?" in usage_error(*run, "--providers", "CUDAExecutionProvide")
    assert "--log is 0 to 4, not 9" in usage_error(*run, "--log", "9")
    assert "--threads needs a number of at least 0" in usage_error(*run, "--threads=-1")
    assert "--runs needs a number of at least 1" in usage_error("bench", add, "--runs", "0")
    assert "--seconds needs a positive number" in usage_error("bench", add, "--seconds", "-1")
    assert "--input gives 'a' twice" in usage_error("run", add, "--input", "a=x.npy", "--input", "a=y.npy")
    assert "the model has no input 'c'; it has: a, b" in usage_error(*run, "--input", f"c={save(add, 'c.npy', GRID)}")
    assert "is not one of --providers" in usage_error(*run, "--option", "TestExecutionProvider.ops=Add")


def save(model, name, array, **arguments):
    path = model.parent / name
    np.save(path, array, **arguments)
    return path


def run_on(model, array, folder, name="a.npy"):
    words = [f"--input=x={save(model, name, array)}"]
    done = program.run("run", model, *words, "--save", folder)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "y.npy")


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "<f2", ">f2", "|i1", "<i8", ">i8", "<u2", ">u4", "|b1", "<c8", ">c8", ">c16",
                                   "<U5", ">U5", "|S5"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_files_of_every_dtype_and_order(tmp_path, dtype, order):
    dtype = np.dtype(dtype)
    source = np.array([["a", "bé", "c\0d"], ["", "efghi", "日本"]]) if dtype.kind == "U" else np.arange(-2, 4).reshape(2, 3)
    if dtype.kind == "S":
        source = [[b"a", b"bc", b"d\0e"], [b"", b"fghij", b"k"]]
    if dtype.kind == "c":
        source = source + 1j * source[::-1]
    array = np.array(source).astype(dtype, order=order)
    element_type = TensorProto.STRING if dtype.kind in "US" else helper.np_dtype_to_tensor_dtype(dtype.newbyteorder("="))
    model = write(tmp_path / "m.onnx", "Identity", ["x"], element_type, [None, None])
    result = run_on(model, array, tmp_path / "out")
    expected = array.astype("U") if dtype.kind == "S" else array
    np.testing.assert_array_equal(result, expected)


def test_scalars_and_empty_arrays(tmp_path):
    model = write(tmp_path / "m.onnx", "Identity", ["x"], TensorProto.FLOAT, None)
    for array in (np.float32(3), np.zeros((0, 3), np.float32), np.zeros((2, 0), np.float32, order="F")):
        np.testing.assert_array_equal(run_on(model, array, tmp_path / "out"), array)


def test_files_that_are_no_input(add, tmp_path):
    def given(path):
        return fault("run", add, "--input", f"a={path}", "--random")

    whole = save(add, "a.npy", GRID).read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-1])
    (tmp_path / "head.npy").write_bytes(whole[:20])
    assert "ends before its data" in given(tmp_path / "cut.npy")
    assert "header is damaged" in given(tmp_path / "head.npy")
    assert "cannot be opened" in given(tmp_path / "none.npy")
    assert "not a .npy file" in given(add)
    assert "not a .npy file" in given(tmp_path)
    assert "structured arrays" in given(save(add, "s.npy", np.zeros(3, [("x", "f4"), ("y", "i4")])))
    assert "pickled Python objects" in given(save(add, "o.npy", np.array(["a", 1], object), allow_pickle=True))
    assert "no tensor type" in given(save(add, "d.npy", np.array(["2020-01-01"], "M8[D]")))
    assert "for input 'a'" in given(save(add, "f.npy", GRID.astype(float)))
    huge = whole.replace(b"(2, 3)", b"(999999999999999, 3)").replace(b"<f4", b"<U9")
    (tmp_path / "huge.npy").write_bytes(huge)
    assert "huge.npy: " in given(tmp_path / "huge.npy")


@pytest.mark.parametrize("command", ["run", "info", "explain", "bench"])
def test_files_that_are_no_model(tmp_path, command):
    for name, content in (("empty", b""), ("noise", bytes(range(256)) * 9), ("text", b"hello\n")):
        (tmp_path / name).write_bytes(content)
        assert name in fault(command, tmp_path / name)
    assert "not a regular file" in fault(command, tmp_path)
    assert "does not exist" in fault(command, tmp_path / "none")


def test_output_that_cannot_be_written(add, tmp_path):
    for words in (("info", add), ("run", add, "--random", "--json"), ("doctor",)):
        with open("/dev/full", "w") as full:
            done = program.run(*words, capture_output=False, stdout=full, stderr=-1)
        assert done.returncode == 1 and "cannot write to standard output" in done.stderr
    assert "the folder cannot be made" in fault("run", add, "--random", "--save", add)
    closed = program.run("run", add, "--random", preexec_fn=lambda: os.close(0))
    assert closed.returncode == 0


def test_json_is_json(add, tmp_path):
    def load(*words):
        done = program.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert load("info", add)["inputs"][0] == {"name": "a", "type": "float", "shape": ["n", 3]}
    a, b = save(add, "a.npy", GRID), save(add, "b.npy", GRID)
    (result,) = load("run", add, "--input", f"a={a}", "--input", f"b={b}")["outputs"]
    assert result == {"name": "y", "type": "float", "shape": [2, 3], "min": 0, "max": 10, "mean": 5}
    assert load("explain", add, "--html", tmp_path / "page.html")["providers"][0]["flops"] == 3
    report = load("explain", add)
    assert report["assumed_dims"] == ["n"] and report["nodes"][0]["flops_assumed"]
    assert "In the FLOPs of 1 node, unknown dimensions count as 1." in program.run("explain", add).stdout
    report = load("explain", add, "--dim", "n=5")
    assert report["providers"][0]["flops"] == 15 and not report["assumed_dims"] and not report["flops_assumption"]
    assert load("bench", add, "--seconds", "0.05", "--profile")["profile"][0]["node"] == "Add node"
    load("optimize", add, tmp_path / "o.onnx")
    load("doctor")
    load("providers", "CUDAExecutionProvider")


def test_optimize_fixes_dimensions_and_may_write_over_its_input(add):
    assert program.run("optimize", add, add, "--dim", "n=4").returncode == 0
    (shape,) = {tuple(d.dim_value for d in value.type.tensor_type.shape.dim) for value in onnx.load(add).graph.input}
    assert shape == (4, 3)


def test_a_large_model_optimized_over_itself_computes_the_same(tmp_path):
    weight = np.random.default_rng(1).standard_normal((512, 4096), np.float32)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 512])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4096])
    nodes = [helper.make_node("Identity", ["x"], ["i"]), helper.make_node("MatMul", ["i", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [onnx.numpy_helper.from_array(weight, "w")])
    path = tmp_path / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    feed = {"x": np.ones((2, 512), np.float32)}
    expected = epona.InferenceSession(path).run(None, feed)[0]
    options = epona.SessionOptions()
    options.optimized_model_filepath = str(path)
    np.testing.assert_array_equal(epona.InferenceSession(path, options).run(None, feed)[0], expected)
    assert program.run("optimize", path, path).returncode == 0
    np.testing.assert_array_equal(epona.InferenceSession(path).run(None, feed)[0], expected)
    assert [node.op_type for node in onnx.load(path).graph.node] == ["MatMul"] and len(list(tmp_path.iterdir())) == 1
    options.optimized_model_filepath = "/dev/null"
    epona.InferenceSession(path, options)
