"""The conformance cases that ship in the `onnx` package: node cases and whole models, with inputs and expected outputs."""

import contextlib
import dataclasses
import glob
import io
import os
import pathlib
import pickle
import re
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"

# From the list of real models in onnx/backend/test/case/model; all others have 1e-3.
LIGHT_RTOL = {"densenet121": 2e-3}


@dataclasses.dataclass
class Case:
    """A model and its data sets, each (inputs, expected outputs). `model` is serialised, or a path."""

    name: str
    kind: str
    model: bytes | str
    data_sets: list
    rtol: float = 1e-3
    atol: float = 1e-7


def plain(value):
    """Protos become arrays or lists, so that cases can be pickled."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, dict) else np.asarray(value)


def node_cases():
    # An import of its own: collecting takes ten seconds and more.
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [
        Case(c.name, "node", c.model.SerializeToString(), [tuple(map(plain, s)) for s in c.data_sets], c.rtol, c.atol)
        for c in found
    ]


def load_proto(path, declared):
    for field, proto in (("sequence_type", onnx.SequenceProto()), ("optional_type", onnx.OptionalProto())):
        if declared.HasField(field):
            proto.ParseFromString(pathlib.Path(path).read_bytes())
            return plain(proto)
    return plain(onnx.load_tensor(path))


def load_data_set(folder, graph):
    def load(stem, infos):
        count = len(glob.glob(os.path.join(folder, f"{stem}_*.pb")))
        return [load_proto(os.path.join(folder, f"{stem}_{i}.pb"), infos[i].type) for i in range(count)]

    return load("input", graph.input), load("output", graph.output)


def folder_cases(kind):
    """Models in folders: model.onnx and test_data_set_N with protobuf files."""
    for folder in sorted((DATA / kind).iterdir()):
        path = folder / "model.onnx"
        if not path.exists():
            continue
        model = onnx.load(path)
        data_sets = [load_data_set(d, model.graph) for d in sorted(glob.glob(str(folder / "test_data_set*")))]
        yield Case(f"{kind}/{folder.name}", kind, path.read_bytes(), data_sets)


def light_cases():
    """Real architectures whose weights are all alike; the input is the ramp that their expected outputs were made with."""
    for path in sorted((DATA / "light").glob("*.onnx")):
        model = onnx.load(path)
        constants = {initializer.name for initializer in model.graph.initializer}
        inputs = []
        for info in model.graph.input:
            if info.name not in constants:
                shape = [d.dim_value if d.HasField("dim_value") else 1 for d in info.type.tensor_type.shape.dim]
                count = int(np.prod(shape))
                inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
        outputs = [plain(onnx.load_tensor(p)) for p in sorted(DATA.glob(f"light/{path.stem}_output_*.pb"))]
        name = re.sub("^light_", "", path.stem)
        yield Case(f"light/{name}", "light", str(path), [(inputs, outputs)], LIGHT_RTOL.get(name, 1e-3))


def load_cases():
    """All cases, from a cache in the build folder when it is there."""
    cache = ROOT / "build" / f"conformance-{onnx.__version__}.pickle"
    with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
        return pickle.loads(cache.read_bytes())
    cases = node_cases()
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        cases += folder_cases(kind)
    cases += light_cases()
    cache.parent.mkdir(exist_ok=True)
    part = cache.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(cases))
    part.replace(cache)
    return cases
