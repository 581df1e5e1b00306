"""Options and the choice of models and session settings for the model tests."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "scripts")]

from model_builders import catalog  # noqa: E402
from model_builders.build import model_path  # noqa: E402

# Optimisation level, threads: all levels with one thread, the default level with two as well.
SETTINGS = [("all", 1), ("all", 2), ("extended", 1), ("basic", 1), ("disable", 1)]
QUICK_SETTINGS = [("all", 2)]
QUICK_BYTES = 60_000_000


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="models below 60 MB, default level and two threads only")
    parser.addoption("--model", action="append", default=[], help="only this model (may be repeated)")


def chosen_models(config):
    models = catalog.select(config.getoption("--model", default=[]) or None, "core")
    if config.getoption("--quick", default=False):
        models = [m for m in models if not model_path(m.name).exists() or _size(m) < QUICK_BYTES]
    return models


def _size(model):
    return model_path(model.name).stat().st_size


def pytest_generate_tests(metafunc):
    quick = metafunc.config.getoption("--quick", default=False)
    models = chosen_models(metafunc.config)
    if "decoder" in metafunc.fixturenames:
        names = [m.name for m in models if m.name.startswith(("gpt2", "llama135"))]
        metafunc.parametrize("decoder", names)
    elif "model" in metafunc.fixturenames:
        # The settings of one model run one after the other while its file and references are still in memory.
        settings = QUICK_SETTINGS if quick else SETTINGS
        combined = [(model, level, threads) for model in models for level, threads in settings]
        ids = [f"{model.name}-{level}-{threads}" for model, level, threads in combined]
        metafunc.parametrize("model,level,threads", combined, ids=ids)


@pytest.fixture(scope="session", autouse=True)
def models_are_there(request):
    missing = [m.name for m in chosen_models(request.config) if not model_path(m.name).exists()]
    if missing:
        pytest.exit(f"models are missing: {' '.join(missing)}; run scripts/models.py --mark core", returncode=1)
