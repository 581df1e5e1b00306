"""The cache of compiled models: the same results, nothing converted or compiled again, and damage is never believed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import ov
import pytest
from onnx import TensorProto, helper
from ov import CPU, NAME

pytestmark = pytest.mark.filterwarnings("error:.*failed while running")
SHAPE = [1, 32, 16, 16]


def chain(seed, batch=1, refused=False):
    random = np.random.default_rng(seed)
    weights, nodes, last = {}, [], "x"
    for i in range(6):
        weights[f"w{i}"] = (random.standard_normal((32, 32, 3, 3)) / 17).astype(np.float32)
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"relu{i}"))
        last = f"r{i}"
        if refused and i == 2:
            nodes.append(helper.make_node("Binarizer", [last], ["b"], name="refused", domain="ai.onnx.ml"))
            last = "b"
    shape = [batch, *SHAPE[1:]]
    values = [ov.value(name, TensorProto.FLOAT, shape) for name in ("x", last)]
    return ov.model(nodes, values[:1], values[1:], weights, domains=["ai.onnx.ml"])


def sample(batch=1):
    return np.random.default_rng(2).standard_normal([batch, *SHAPE[1:]]).astype(np.float32)


def run(model, folder=None, batch=1, severity=3, **options):
    session = ov.session(model, {**options, **({"cache_dir": folder} if folder else {})}, severity=severity)
    return session.run(None, {"x": sample(batch)})[0]


def files(folder, ending):
    return sorted(folder.glob(f"*.{ending}"))


def test_makes_files_once_and_the_same_results(tmp_path):
    folder = tmp_path / "cache"
    made = chain(0)
    first = run(made, folder)
    known = sorted(folder.iterdir())
    assert len(files(folder, "blob")) == len(files(folder, "claim")) == 1 and len(known) == 2
    assert np.array_equal(first, run(made, folder)) and sorted(folder.iterdir()) == known
    # The same graph with other weights is another model.
    other = run(chain(1), folder)
    assert np.array_equal(other, run(chain(1))) and not np.array_equal(other, first)
    assert len(files(folder, "blob")) == 2


def test_other_settings_are_other_files(tmp_path):
    made = chain(0)
    for count, options in enumerate([{}, {"num_of_threads": 1}, {"num_streams": 2}, {"reshape_input": "x[1..4,32,16,16]"}], 1):
        run(made, tmp_path, **options)
        assert len(files(tmp_path, "blob")) == count


def test_who_runs_what_is_remembered(tmp_path):
    made = chain(0, refused=True)
    first = ov.session(made, {"cache_dir": tmp_path})
    known = sorted(tmp_path.iterdir())
    second = ov.session(made, {"cache_dir": tmp_path})
    assert sorted(tmp_path.iterdir()) == known and len(files(tmp_path, "blob")) == 2
    assert ov.placed(first) == ov.placed(second) and ov.placed(second)["refused"] == CPU
    assert ov.refusals(first) == ov.refusals(second)
    assert np.array_equal(first.run(None, {"x": sample()})[0], second.run(None, {"x": sample()})[0])


def test_free_dims_and_models_by_shape(tmp_path):
    made = chain(0, batch="N")
    for options in ({}, {"disable_dynamic_shapes": True}):
        expected = [run(made, batch=batch, **options) for batch in (1, 3)]
        for _ in range(2):
            session = ov.session(made, {"cache_dir": tmp_path, **options})
            for batch, result in zip((1, 3), expected, strict=True):
                assert np.array_equal(session.run(None, {"x": sample(batch)})[0], result)
    assert len(files(tmp_path, "blob")) == 3


def spoil(file, how):
    content = bytearray(file.read_bytes())
    if how == "short":
        content = content[: len(content) // 2]
    elif how == "empty":
        content = b""
    elif how == "bit":
        content[len(content) // 2] ^= 4
    elif how == "seal":
        content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("ending", ["blob", "claim"])
@pytest.mark.parametrize("how", ["short", "empty", "bit", "seal"])
def test_damage_is_reported_and_made_good(tmp_path, capfd, ending, how):
    made = chain(0)
    first = run(made, tmp_path)
    (file,) = files(tmp_path, ending)
    whole = file.read_bytes()
    spoil(file, how)
    assert np.array_equal(first, run(made, tmp_path, severity=2))
    message = capfd.readouterr().err
    assert str(file) in message and "damaged" in message
    assert len(file.read_bytes()) == len(whole)
    assert np.array_equal(first, run(made, tmp_path, severity=2))
    assert str(file) not in capfd.readouterr().err


@pytest.mark.parametrize("ending", ["blob", "claim"])
def test_file_of_another_model_is_not_believed(tmp_path, capfd, ending):
    first, second = chain(0), chain(1, refused=True)
    expected = run(first, tmp_path)
    (mine,) = files(tmp_path, ending)
    run(second, tmp_path)
    foreign = next(file for file in files(tmp_path, ending) if file != mine)
    shutil.copy(foreign, mine)
    assert np.array_equal(expected, run(first, tmp_path, severity=2))
    assert "made for something else" in capfd.readouterr().err


def test_lost_file_is_made_anew(tmp_path):
    made = chain(0)
    expected = run(made, tmp_path)
    for ending in ("blob", "claim"):
        files(tmp_path, ending)[0].unlink()
        assert np.array_equal(expected, run(made, tmp_path))
        assert len(files(tmp_path, ending)) == 1


def test_file_may_go_while_a_session_runs(tmp_path):
    made = chain(0)
    expected = run(made, tmp_path)
    session = ov.session(made, {"cache_dir": tmp_path})
    shutil.rmtree(tmp_path)
    assert np.array_equal(expected, session.run(None, {"x": sample()})[0])


def test_time_of_a_file_is_that_of_its_last_use(tmp_path):
    made = chain(0)
    run(made, tmp_path)
    for file in tmp_path.iterdir():
        os.utime(file, (1e9, 1e9))
    run(made, tmp_path)
    assert all(file.stat().st_mtime > 1.5e9 for file in tmp_path.iterdir())


def test_unfinished_files_go_when_they_are_old(tmp_path):
    old, new, foreign = tmp_path / "epona-1.2.3.part", tmp_path / "epona-4.5.6.part", tmp_path / "mine.part"
    for file in (old, new, foreign):
        file.write_bytes(b"half")
    for file in (old, foreign):
        os.utime(file, (1e9, 1e9))
    run(chain(0), tmp_path)
    assert not old.exists() and new.exists() and foreign.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_cannot_be_written(tmp_path, capfd):
    tmp_path.chmod(0o555)
    run(chain(0), tmp_path, severity=2)
    assert "nothing was added to the cache" in capfd.readouterr().err


def test_many_processes_fill_one_folder(tmp_path):
    (tmp_path / "model.onnx").write_bytes(chain(0))
    code = f"""
import sys; sys.path[:0] = {sys.path!r}
import hashlib, test_cache
from pathlib import Path
folder = Path({str(tmp_path)!r})
print(hashlib.sha256(test_cache.run(str(folder / "model.onnx"), folder / "cache").tobytes()).hexdigest())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    workers = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    answers = {worker.communicate(timeout=120)[0] for worker in workers}
    assert len(answers) == 1 and len(answers.pop().strip()) == 64
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_nothing_is_converted_again(tmp_path):
    """The reader of ONNX is not even opened; nor is anything compiled, which the unchanged folder shows."""
    (tmp_path / "model.onnx").write_bytes(chain(0))
    code = f"""
import sys; sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}
import test_cache
from pathlib import Path
folder = Path({str(tmp_path)!r})
test_cache.run(str(folder / "model.onnx"), folder / "cache")
print("openvino_onnx_frontend" in Path("/proc/self/maps").read_text())
"""
    opened = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120) for _ in range(2)]
    assert [run.stdout.strip() for run in opened] == ["True", "False"], opened[1].stderr


def test_composite_devices_use_openvinos_own(tmp_path):
    made = chain(0)
    for _ in range(2):
        session = ov.session(made, {"device_type": "AUTO:CPU", "cache_dir": tmp_path})
        assert set(ov.placed(session).values()) == {NAME}
        assert np.allclose(session.run(None, {"x": sample()})[0], run(made), rtol=1e-4, atol=1e-5)
