"""Programs from PyPI run unmodified on Epona under the name onnxruntime."""

import hashlib
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import epona

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHIM = ROOT / "compat/onnxruntime"
VENVS = pathlib.Path(os.environ.get("EPONA_CLIENT_VENVS", ROOT / "build/clients"))
LIMIT = int(os.environ.get("EPONA_CLIENT_SECONDS", "300"))
CLIENTS = [line.split("\t") for line in (HERE / "MANIFEST.tsv").read_text().splitlines()]
HEAVY = os.environ.get("EPONA_HEAVY_CLIENTS") == "1"


def environment(name):
    """The interpreter of an environment, made when it is not there or its requirements have changed."""
    requirements = HERE / f"requirements/{name}.txt"
    stamp = hashlib.sha256(requirements.read_bytes()).hexdigest()
    folder = VENVS / name
    python = folder / "bin/python"
    if not python.exists() or not (folder / ".stamp").exists() or (folder / ".stamp").read_text() != stamp:
        VENVS.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=LIMIT)
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "-r", requirements]
        subprocess.run(install, check=True, timeout=3 * LIMIT)
        (folder / ".stamp").write_text(stamp)
    return python


def clean(path=None):
    # One thread, as the expected output was made: sums do not depend on the machine.
    extra = {"PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": path or ""}
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | extra


def run(command, path=None):
    return subprocess.run(
        [str(part) for part in command], env=clean(path), cwd=HERE, timeout=LIMIT, capture_output=True, encoding="utf-8"
    )


def compare_output(name, text, tmp_path, whole, decimal):
    actual = tmp_path / f"{name}.txt"
    actual.write_text(text, encoding="utf-8")
    result = run([sys.executable, HERE / "compare.py", HERE / f"{name}.out", actual, whole, decimal])
    assert result.returncode == 0, result.stdout + result.stderr


def marked():
    """The clients as parameters."""
    for name, venv, group, whole, decimal, raw in CLIENTS:
        skip = pytest.mark.skipif(group == "heavy" and not HEAVY, reason="EPONA_HEAVY_CLIENTS=1 runs it")
        yield pytest.param(name, venv, whole, decimal, float(raw), id=name, marks=skip)


@pytest.mark.parametrize("name, venv, whole, decimal, raw", list(marked()))
def test_prints_what_it_prints_on_onnxruntime(name, venv, whole, decimal, raw, tmp_path):
    python = environment(venv)
    path = f"{SHIM}{os.pathsep}{pathlib.Path(epona.__file__).parent.parent}"
    where = run([python, "-c", "import onnxruntime; print(onnxruntime.__file__)"], path)
    assert where.stdout.startswith(str(SHIM)), where.stderr
    result = run([python, HERE / f"{name}.py"], path)
    assert result.returncode == 0, result.stderr
    compare_output(name, result.stdout, tmp_path, whole, decimal)


def compare(ours, theirs, tolerance, place):
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), place
        for i, (x, y) in enumerate(zip(ours, theirs)):
            compare(x, y, tolerance, f"{place}[{i}]")
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), place
        for key in theirs:
            compare(ours[key], theirs[key], tolerance, f"{place}[{key!r}]")
    else:
        x, y = np.asarray(ours), np.asarray(theirs)
        assert x.dtype == y.dtype and x.shape == y.shape, f"{place}: {x.dtype}{x.shape} and {y.dtype}{y.shape}"
        if y.dtype.kind == "f" and y.size:
            assert np.array_equal(np.isnan(x), np.isnan(y)), f"{place}: NaN in other places"
            scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isinf(y), 0, y)))))
            with np.errstate(invalid="ignore"):
                worst = float(np.nanmax(np.where(x == y, 0, np.abs(x.astype("f8") - y))))
            assert worst <= tolerance * scale, f"{place}: differs by {worst:g} where values reach {scale:g}"
        else:
            assert np.array_equal(x, y), f"{place}: {np.sum(x != y)} of {y.size} elements differ"


@pytest.mark.parametrize("name, venv, whole, decimal, raw", list(marked()))
def test_tensors_are_those_of_onnxruntime(name, venv, whole, decimal, raw, tmp_path):
    kept = tmp_path / "records"
    result = run([environment(venv), HERE / "recorder.py", kept, HERE / f"{name}.py"])
    # What it prints is not judged: onnxruntime's int8 kernels saturate on CPUs without VNNI, and its text then differs.
    assert result.returncode == 0, result.stderr
    records = pickle.loads(kept.read_bytes())
    runs = 0
    for number, record in enumerate(records):
        source = record["bytes"] or record["path"]
        if not isinstance(source, bytes) and not os.path.exists(source):
            source = record["bytes_of_path"]
        session = epona.InferenceSession(source)
        for names, feed, results in record["runs"]:
            place = f"session {number} ({record['path']}), run {runs}"
            compare(session.run(names, feed), results, raw, place)
            runs += 1
    assert runs > 0
    print(f"{name}: {len(records)} sessions, {runs} runs compared")


def wheel():
    found = sorted((ROOT / "dist").glob("epona-*.whl"))
    return found[-1] if found else None


@pytest.mark.skipif(wheel() is None, reason="dist has no wheel of Epona: `make install` makes one")
def test_both_distributions_installed(tmp_path):
    """Without onnxruntime: pins hold, metadata is there, a client runs, and `pip check` is content."""
    source = shutil.copytree(SHIM, tmp_path / "source")  # setuptools writes beside what it builds
    make = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", tmp_path, source]
    result = run(make)
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "venv"
    assert run([sys.executable, "-m", "venv", folder]).returncode == 0
    python = folder / "bin/python"
    pins = [r for r in (HERE / "requirements/text2tashkeel.txt").read_text().split() if not r.startswith("onnxruntime")]
    (shim,) = tmp_path.glob("onnxruntime-1.32.0-*.whl")
    result = run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel(), shim, *pins])
    assert result.returncode == 0, result.stderr
    result = run([python, "-m", "pip", "check"])
    assert result.returncode == 0, result.stdout
    result = run([python, "-c", "import importlib.metadata as m; print(m.version('onnxruntime'), m.files('onnxruntime')[0].parts[0])"])
    assert result.stdout.startswith("1.32.0 onnxruntime"), result.stderr
    result = run([python, HERE / "text2tashkeel_ar.py"])
    assert result.returncode == 0, result.stderr
    compare_output("text2tashkeel_ar", result.stdout, tmp_path, "0", "0")
