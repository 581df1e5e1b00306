"""docs/compatibility.md says what scripts/compare_api.py finds, and every difference has a reason."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_page_is_up_to_date():
    result = subprocess.run(
        [sys.executable, ROOT / "scripts/compare_api.py", "--check"], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr


def test_stubs_are_up_to_date():
    result = subprocess.run(
        [sys.executable, ROOT / "scripts/make_stubs.py", "--check"], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
