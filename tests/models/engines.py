"""Sessions of the module under test (EPONA_TEST_MODULE, `epona` by default) and of the peer."""

import importlib
import os

import numpy as np

MODULE = os.environ.get("EPONA_TEST_MODULE", "epona")
PROVIDERS = os.environ.get("EPONA_PROVIDERS_UNDER_TEST", "CPUExecutionProvider").split(",")
CPU = ["CPUExecutionProvider"]
LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


def create(module, model, level, threads, config=(), providers=None):
    """A session on a path or on bytes."""
    options = module.SessionOptions()
    options.graph_optimization_level = getattr(module.GraphOptimizationLevel, LEVELS[level])
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    for key, value in config:
        options.add_session_config_entry(key, value)
    return module.InferenceSession(model, options, providers=providers or CPU)


def tested(model, level, threads):
    return create(importlib.import_module(MODULE), model, level, threads, providers=PROVIDERS)


# The peer's waiting threads would otherwise take the processor from whatever else runs here.
NO_SPINNING = ("session.intra_op.allow_spinning", "0")


def peer(model, level="all", threads=2, config=()):
    return create(importlib.import_module("onnxruntime"), model, level, threads, (NO_SPINNING, *config))


def flatten(outputs):
    """Arrays only: a list of dictionaries (ZipMap) becomes its keys and its values."""
    arrays = []
    for output in outputs:
        if isinstance(output, list):
            arrays.append(np.array([list(row.keys()) for row in output]))
            arrays.append(np.array([list(row.values()) for row in output], np.float32))
        else:
            arrays.append(np.asarray(output))
    return arrays


def run(session, feed):
    return flatten(session.run(None, feed))
