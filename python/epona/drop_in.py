"""Epona under the name onnxruntime: for one process, or as the content of the package in compat/onnxruntime."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
import types
from collections.abc import Iterable, Sequence

# The version of onnxruntime whose API this is; programs compare with it.
API_VERSION = "1.32.0"

_NATIVE = "onnxruntime.capi.onnxruntime_pybind11_state"

# Submodules that programs import, and ours in their place.
_SUBMODULES = {
    "onnxruntime.capi": "epona.capi",
    _NATIVE: "epona.capi.onnxruntime_pybind11_state",
    "onnxruntime.capi._pybind_state": "epona.capi._pybind_state",
    "onnxruntime.capi.onnxruntime_inference_collection": "epona.capi.onnxruntime_inference_collection",
    "onnxruntime.capi.onnxruntime_validation": "epona.capi.onnxruntime_validation",
    "onnxruntime.capi.build_and_package_info": "epona.capi.build_and_package_info",
    "onnxruntime.backend": "epona.backend",
    "onnxruntime.backend.backend": "epona.backend.backend",
    "onnxruntime.backend.backend_rep": "epona.backend.backend_rep",
}

# What Epona does not have, with the reason that an import gives.
ABSENT = {
    "onnxruntime.quantization": "it makes quantised models; use onnxruntime's package for that, Epona runs the result",
    "onnxruntime.transformers": "it rewrites transformer models for one runtime; Epona's passes do this when a model is loaded",
    "onnxruntime.tools": "these are command-line tools of the onnxruntime package; see `epona --help`",
    "onnxruntime.datasets": "these are onnxruntime's example models; Epona ships none",
    "onnxruntime.training": "Epona runs models and does not train them",
}


class _Distribution(importlib.metadata.Distribution):
    """Metadata of a distribution called onnxruntime."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return (
                f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {API_VERSION}\n"
                "Summary: Epona under the name onnxruntime\nRequires-Dist: epona\n"
            )
        return "onnxruntime\n" if filename == "top_level.txt" else None

    def locate_file(self, path: str | os.PathLike) -> os.PathLike:
        return importlib.import_module("pathlib").Path(__file__).parent / path


class _Metadata(importlib.metadata.DistributionFinder):
    """Finds that distribution, before one that is installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: object = None) -> None:
        return None

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context = importlib.metadata.DistributionFinder.Context()
    ) -> Iterable[importlib.metadata.Distribution]:
        name = context.name
        if name is None or name.lower().replace("_", "-") == "onnxruntime":
            yield _Distribution()


class _Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports ours for the submodules of onnxruntime, and says why another is not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in _SUBMODULES:
            return importlib.machinery.ModuleSpec(fullname, self)
        for name, reason in ABSENT.items():
            if fullname == name or fullname.startswith(name + "."):
                raise ModuleNotFoundError(
                    f"No module named '{fullname}': Epona stands in for onnxruntime here and does not have {name}: {reason}",
                    name=fullname,
                )
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system takes what is in sys.modules afterwards, so that both names give one module.
        sys.modules[module.__name__] = importlib.import_module(_SUBMODULES[module.__name__])


def fill(module: types.ModuleType) -> None:
    """Makes a module named onnxruntime Epona's: its names, its submodules, and the names of its exceptions."""
    import epona
    from epona.capi import onnxruntime_pybind11_state as native

    for name in epona.__all__:
        if not name.startswith("__"):
            setattr(module, name, getattr(epona, name))
    module.__version__ = module.version = API_VERSION
    module.package_name, module.cuda_version = "onnxruntime", ""
    module.get_version_string = lambda: API_VERSION
    for name in ("capi", "backend"):
        module.__dict__.pop(name, None)
    for value in vars(native).values():
        if isinstance(value, type) and issubclass(value, Exception):
            value.__module__ = _NATIVE
    if not any(isinstance(finder, _Submodules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Submodules())
    module.capi = importlib.import_module("onnxruntime.capi")
    for name in ("onnxruntime_pybind11_state", "_pybind_state", "onnxruntime_inference_collection"):
        importlib.import_module(f"onnxruntime.capi.{name}")


def as_onnxruntime() -> types.ModuleType:
    """From here on `import onnxruntime` gives Epona in this process. Returns that module.

    RuntimeError when another onnxruntime is imported already.
    """
    present = sys.modules.get("onnxruntime")
    if present is not None:
        if getattr(present, "_is_epona", False):
            return present
        raise RuntimeError(
            f"onnxruntime is imported already ({getattr(present, '__file__', None)}): call epona.as_onnxruntime() before"
            " anything imports it"
        )
    module = types.ModuleType("onnxruntime", "Epona under the name onnxruntime.")
    module.__file__, module.__path__ = __file__, []
    module.__spec__ = importlib.machinery.ModuleSpec("onnxruntime", None, origin=__file__, is_package=True)
    module._is_epona = True
    sys.modules["onnxruntime"] = module
    sys.meta_path.insert(0, _Metadata())
    try:
        fill(module)
    except BaseException:
        del sys.modules["onnxruntime"]
        raise
    return module
