"""OpenVINO as a provider. Skipped where the openvino package is not installed; it is in requirements-dev.txt."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "scripts")]


def pytest_collection_modifyitems(items):
    if importlib.util.find_spec("openvino") or os.environ.get("EPONA_OPENVINO_DIR"):
        return
    here = Path(__file__).resolve().parent
    for item in items:
        if here in Path(item.path).parents and not item.get_closest_marker("without_openvino"):
            item.add_marker(pytest.mark.skip(reason="openvino is not installed: pip install -r requirements-dev.txt"))


def pytest_configure(config):
    config.addinivalue_line("markers", "without_openvino: runs where OpenVINO is not installed as well")
