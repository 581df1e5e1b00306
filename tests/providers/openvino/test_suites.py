"""Core models and conformance cases with OpenVINO first: a part here, all of it in `make test-openvino`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ov import CPU, NAME

ROOT = Path(__file__).resolve().parents[3]
ALL = bool(os.environ.get("EPONA_OPENVINO_ALL"))

# A convolutional net, both kinds of 8-bit weights, text, sound, control flow, float16, recurrence, trees.
SOME = (
    "mobilenet_v2 mobilenet_v2_qdq_u8s8 mobilenet_v2_qdq_s8s8 resnet50_qdq_s8s8 PP-OCRv6_rec_small magika basic_pitch_nmp "
    "silero_vad silero_vad_op18_ifless minilm_l6_real_fp16 ddddocr_common_old skl_gnb_iris skl_rf_digits"
).split()
EVERY = 12  # one of so many conformance cases


def run(*command, seconds):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "EPONA_PROVIDERS_UNDER_TEST": f"{NAME},{CPU}",
    }
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def names_of(kind):
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "conformance")]
    if kind == "models":
        from model_builders import catalog

        return [model.name for model in catalog.select(None, "core")] if ALL else SOME
    import cases

    return [case.name for case in cases.load_cases()]


@pytest.mark.parametrize("name", names_of("models"))
def test_model(name):
    from model_builders.build import model_path

    if not model_path(name).exists():
        pytest.skip(f"{name} is not there: scripts/models.py --only {name}")
    # All of it: every level, one and two threads, and the tokens of decoders.
    part = [] if ALL else ["-k", "all-2"]
    run("-m", "pytest", "-q", "tests/models", "--model", name, *part, seconds=3000 if ALL else 900)


def test_conformance():
    names = names_of("conformance")[:: 1 if ALL else EVERY]
    listed = Path(__file__).with_name("conformance_failures.txt")
    run("tests/conformance", "--list", str(listed), *names, seconds=1500)
