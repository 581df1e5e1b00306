"""The providers that the contract is held against: those that can run here, and the ones for tests."""

import pytest

import epona

TESTS = ["TestExecutionProvider", "OtherTestExecutionProvider"]


def pytest_generate_tests(metafunc):
    if "provider" in metafunc.fixturenames:
        metafunc.parametrize("provider", [*epona.get_available_providers(), *TESTS])


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(7)
