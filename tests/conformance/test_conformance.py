"""Every conformance case as a pytest; the cases run once, in worker processes, when the first result is asked for."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402
import execute  # noqa: E402
import expected  # noqa: E402

CASES = {case.name: case for case in cases.load_cases()}
LISTED = expected.read()


@pytest.fixture(scope="session")
def results(request):
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    names = {p["name"] for p in params if "name" in p}
    module = os.environ.get("EPONA_TEST_MODULE", "epona")
    return execute.run_cases([CASES[name] for name in CASES if name in names], module)


@pytest.mark.parametrize("name", list(CASES))
def test_case(name, results):
    error = results[name]
    if name in LISTED:
        passes = error is None and not expected.is_random(LISTED[name])
        assert not passes, f"{name} passes: take it off expected_failures.txt"
        pytest.xfail(LISTED[name])
    assert error is None, error


def test_list_has_no_strangers():
    strangers = set(LISTED) - set(CASES)
    assert not strangers, f"expected_failures.txt lists cases that do not exist: {sorted(strangers)}"
