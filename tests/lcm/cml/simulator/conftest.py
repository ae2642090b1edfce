"""One simulator process for all tests over real HTTP."""

import pytest

from tests.support.simulator import SimulatorProcess


@pytest.fixture(scope="session")
def simulator():
    with SimulatorProcess() as process:
        yield process
