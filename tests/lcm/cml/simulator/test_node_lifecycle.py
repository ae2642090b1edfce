"""States of nodes and labs over time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.simulator.node_lifecycle import (
    BOOTED,
    DEFINED,
    QUEUED,
    RUNNING,
    STARTED,
    STARTING,
    STOPPED,
    BootPlan,
    NodeLifecycle,
)
from tests.support.cml_environment import TWO_ROUTERS, SimulatorClock, make_simulator
from tests.support.simulator_client import SimulatorClient

MODERN = BootPlan(queue=1, starting=2, boot=10, stop=3, has_starting=True)
OLD = BootPlan(queue=1, starting=2, boot=10, stop=3, has_starting=False)


@pytest.mark.parametrize(
    ("plan", "seconds", "state"),
    [
        (MODERN, 0, QUEUED),
        (MODERN, 1, STARTING),
        (MODERN, 3, STARTED),
        (MODERN, 12.9, STARTED),
        (MODERN, 13, BOOTED),
        (OLD, 1, QUEUED),
        (OLD, 3, STARTED),
        (OLD, 13, BOOTED),
    ],
)
def test_a_started_node_goes_through_its_states(plan, seconds, state):
    life = NodeLifecycle(plan)
    life.start(100)
    assert life.state(100 + seconds) == state


def test_a_stopping_node_keeps_its_state_until_stopped():
    life = NodeLifecycle(MODERN)
    life.start(0)
    life.stop(20)
    assert [life.state(20), life.state(22.9), life.state(23)] == [BOOTED, BOOTED, STOPPED]
    assert not life.is_settled(22)
    assert life.is_settled(23)


def test_starting_twice_does_not_restart():
    life = NodeLifecycle(MODERN)
    life.start(0)
    life.start(12)
    assert life.state(13) == BOOTED


def test_stopped_and_wiped_nodes_can_start_again():
    life = NodeLifecycle(MODERN)
    life.start(0)
    life.stop(20)
    life.start(30)
    assert life.state(30) == QUEUED
    life.stop(50)
    life.wipe()
    assert life.state(60) == DEFINED


def test_a_stuck_node_is_never_booted():
    life = NodeLifecycle(MODERN, is_stuck=True)
    life.start(0)
    assert (life.state(10_000), life.is_settled(10_000)) == (STARTED, False)


@given(st.lists(st.tuples(st.sampled_from(["start", "stop", "wipe"]), st.floats(0, 20)), max_size=12))
def test_the_state_is_always_a_known_one(events):
    life, now = NodeLifecycle(MODERN), 0.0
    for event, seconds in events:
        now += seconds
        getattr(life, event)(*([] if event == "wipe" else [now]))
        assert life.state(now) in RUNNING | {DEFINED, STOPPED}
        assert life.running_for(now) >= life.booted_for(now) >= 0
    assert life.is_settled(now + 100)


def test_a_lab_is_started_never_booted_and_converges():
    clock = SimulatorClock()
    controller = make_simulator(clock, queue_seconds=1, starting_seconds=1, boot_seconds=10, stop_seconds=2)
    client = SimulatorClient(controller)
    lab = client.import_lab(TWO_ROUTERS)

    def state_and_convergence():
        return client.get(f"/labs/{lab}/state"), client.get(f"/labs/{lab}/check_if_converged")

    assert state_and_convergence() == ("DEFINED_ON_CORE", True)
    client("PUT", f"/labs/{lab}/start")
    assert state_and_convergence() == ("STARTED", False)
    clock.advance(30)
    assert state_and_convergence() == ("STARTED", True)
    client("PUT", f"/labs/{lab}/stop")
    assert state_and_convergence() == ("STARTED", False)
    clock.advance(3)
    assert state_and_convergence() == ("STOPPED", True)
    client("PUT", f"/labs/{lab}/wipe")
    assert state_and_convergence() == ("DEFINED_ON_CORE", True)


def test_boot_times_differ_between_nodes():
    clock = SimulatorClock()
    client = SimulatorClient(make_simulator(clock, boot_seconds=10))
    lab = client.import_lab(TWO_ROUTERS)
    client("PUT", f"/labs/{lab}/start")
    booted = []
    for _ in range(30):
        clock.advance(0.5)
        states = client.get(f"/labs/{lab}/lab_element_state")["nodes"].values()
        booted.append(sum(state == "BOOTED" for state in states))
    assert booted == sorted(booted)
    assert {1, 2, 3} <= set(booted)
