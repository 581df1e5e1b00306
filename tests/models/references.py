"""Expected outputs, computed once by the peer and kept beside the models.

A kind of model has one or two references; an answer may be near either of them:

    fp32, fp16, classic   the peer optimised; the peer unoptimised
    qdq                   the peer unoptimised (every node as written); the peer with exact integer products
    qoperator             its twin in DequantizeLinear and QuantizeLinear, unoptimised
    dynamic, int4         its float twin; the peer optimised

Left to its defaults the peer's u8 x s8 product saturates at 16 bits on processors without VNNI and is 5% off on
MobileNet; session.x64quantprecision makes it exact.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path

import engines
import numpy as np
import onnxruntime
from model_builders import dequantized
from model_builders.build import model_path, models_dir, sha256_of

EXACT_INTEGERS = (("session.x64quantprecision", "1"),)
VARIANTS = {
    "fp32": ("optimised", "plain"),
    "fp16": ("optimised", "plain"),
    "classic": ("optimised", "plain"),
    "qdq": ("plain", "exact"),
    "qoperator": ("qdq_twin",),
    "dynamic": ("float_twin", "optimised"),
    "int4": ("float_twin", "optimised"),
}


def _feed_digest(feed):
    digest = hashlib.sha256()
    for name in sorted(feed):
        value = feed[name]
        digest.update(f"{name} {value.dtype} {value.shape}".encode())
        digest.update(json.dumps(value.tolist()).encode() if value.dtype == object else value.tobytes())
    return digest.hexdigest()


class References:
    """The references of one model; a peer session is only made for what is not on disk yet."""

    def __init__(self, model):
        self.model = model
        self.path = model_path(model.name)
        self.sha256 = sha256_of(self.path)
        self._sessions = {}

    @property
    def variants(self):
        return VARIANTS[self.model.kind]

    def session(self, variant, inner=()):
        key = (variant, tuple(inner))
        if key not in self._sessions:
            source = self.source(inner)
            if variant == "optimised":
                session = engines.peer(source)
            elif variant == "plain":
                session = engines.peer(source, "disable")
            elif variant == "exact":
                session = engines.peer(source, config=EXACT_INTEGERS)
            else:
                twin = getattr(dequantized, variant)(self.path)
                session = engines.peer(twin.SerializeToString(), "all" if variant == "float_twin" else "disable")
            self._sessions[key] = session
        return self._sessions[key]

    def source(self, inner=()):
        """The file, or its bytes with inner values added to the outputs."""
        return with_outputs(self.path, inner) if inner else str(self.path)

    def outputs(self, variant, feed, inner=()):
        return self.cached(
            f"{variant} {' '.join(inner)} {_feed_digest(feed)}",
            lambda: engines.run(self.session(variant, inner), feed),
        )

    def cached(self, description, compute):
        key = hashlib.sha256(f"{self.sha256} {onnxruntime.__version__} {description}".encode()).hexdigest()[:24]
        file = models_dir() / "references" / f"{self.model.name}-{key}.npz"
        if file.exists():
            with np.load(file) as stored:
                return [stored[f"arr_{index}"] for index in range(len(stored.files))]
        arrays = compute()
        save(file, arrays)
        return arrays


def save(file, arrays):
    """Under another name first: runs in parallel or interrupted ones leave no half file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(suffix=".npz", dir=file.parent)
    with os.fdopen(handle, "wb") as stream:
        np.savez(stream, *arrays)
    Path(partial).replace(file)


def with_outputs(path, names):
    import onnx

    model = onnx.load(path)
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return model.SerializeToString()
