"""A session over real HTTP, processes and a broker: placed, imported, run, observed, taken down."""

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("controller")]

WHOLE_LIFE = [
    "PENDING",
    "SCHEDULED",
    "INSTANTIATING",
    "READY",
    "RUNNING",
    "COLLECTING",
    "STOPPING",
    "TERMINATED",
]


@pytest.fixture(scope="module")
def controller(plane):
    made = plane.controller("steady")
    yield made
    if made.is_running:
        assert made.stop() == 0


def test_a_session_lives_its_whole_life(plane, controller):
    session = plane.ask(seconds=12)
    plane.until(session, "RUNNING")
    assert len(plane.labs(session)) == 1
    assert plane.until(session, "TERMINATED", "FAILED", seconds=40) == "TERMINATED"
    assert plane.steps(session) == WHOLE_LIFE
    assert plane.labs(session) == []
    assert plane.ports_of(session) == []
