"""One simulator process for all tests over real HTTP."""

import pytest

from lcm.cml.simulator import SimulatorProcess


@pytest.fixture(scope="session")
def simulator():
    with SimulatorProcess() as process:
        yield process
