"""Sessions on OpenVINO, and small models for them."""

import importlib
import os

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ort = importlib.import_module(os.environ.get("EPONA_TEST_MODULE", "epona"))

NAME = "OpenVINOExecutionProvider"
CPU = "CPUExecutionProvider"


def session(model, options=None, threads=2, severity=3, providers=None, config=None):
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = severity
    for key, value in (config or {}).items():
        settings.add_session_config_entry(key, value)
    wanted = providers or [(NAME, {k: str(v) for k, v in (options or {}).items()}), CPU]
    return ort.InferenceSession(model, settings, providers=wanted)


def placed(found):
    """{node name: provider} of a session."""
    return {row["name"]: row["provider"] for row in found.get_placement()}


def refusals(found):
    """{node name: (reason, text)} of the nodes that OpenVINO did not take."""
    answers = {}
    for row in found.get_placement():
        for declined in row["declined"]:
            if declined["provider"] == NAME:
                answers[row["name"]] = (declined["reason"], declined["text"])
    return answers


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, weights=None, opset=18, domains=()):
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def mlp(batch="N", width=64, seed=0):
    """Two layers with an activation; dims of the batch are free by default."""
    random = np.random.default_rng(seed)
    weights = {
        "w1": random.standard_normal((16, width)).astype(np.float32),
        "b1": random.standard_normal(width).astype(np.float32),
        "w2": random.standard_normal((width, 8)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "w2"], ["y"], name="second"),
    ]
    made = model(
        nodes,
        [value("x", TensorProto.FLOAT, [batch, 16])],
        [value("y", TensorProto.FLOAT, [batch, 8])],
        weights,
    )

    def reference(x):
        return np.maximum(x @ weights["w1"] + weights["b1"], 0) @ weights["w2"]

    return made, reference
