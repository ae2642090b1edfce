"""Whatever fails, a session ends in a final state and leaves nothing behind."""

import os
import signal
import time
from random import Random

import pytest

from lcm.cml.simulator.faults import Fault, FaultKind
from tests.bench.control_plane import wait_until
from tests.controller.plane import wait_for_fault

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("controller")]

# What the controller does for a session that is called off while it runs: the calls at which it is killed.
TO_RUNNING = [
    ("POST", r"^/import"),
    ("PATCH", r"^/labs/[^/]+/nodes/"),
    ("PUT", r"^/labs/[^/]+/start"),
    ("GET", r"check_if_converged"),
]
TO_ITS_END = [
    ("GET", r"layer3_addresses"),
    ("PUT", r"^/labs/[^/]+/stop"),
    ("PUT", r"^/labs/[^/]+/wipe"),
    ("DELETE", r"^/labs/[^/]+$"),
]


@pytest.fixture
def worker(plane):
    name = plane.worker()
    yield name
    plane.end_controllers()
    plane.simulator.admin.heal(name)


def ended_well(plane, session):
    wait_until(lambda: plane.labs(session) == [], "its lab is gone", 15, plane.logs)
    assert plane.ports_of(session) == []


def kill_at(plane, worker, controller, stages):
    """Hold each call for a moment and kill the controller in it."""
    for method, path in stages:
        plane.simulator.admin.fail(worker, Fault(FaultKind.LATENCY, path, method, times=1, seconds=1))
        wait_for_fault(plane, worker)
        controller.kill()
        controller.start()


def test_killed_at_each_call_and_restarted(plane, worker):
    controller = plane.controller("unlucky", STATS_SECONDS="600", SURVEY_SECONDS="600")
    session = plane.ask(seconds=90)
    kill_at(plane, worker, controller, TO_RUNNING)
    plane.until(session, "RUNNING")
    assert len(plane.labs(session)) == 1
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "enough"})
    kill_at(plane, worker, controller, TO_ITS_END)
    assert plane.until(session, "TERMINATED", "FAILED", seconds=40) == "TERMINATED"
    assert plane.steps(session).count("INSTANTIATING") == 1
    ended_well(plane, session)
    assert controller.stop() == 0


def test_killed_again_and_again_while_sessions_come_and_go(plane, worker):
    chance, controller = Random(6), plane.controller("doomed")
    sessions = []
    for _ in range(6):
        sessions += [plane.ask(seconds=chance.uniform(4, 9))]
        time.sleep(chance.uniform(0.8, 2))
        controller.kill()
        controller.start()
    for session in sessions:
        assert plane.until(session, "TERMINATED", "CANCELLED", seconds=40)
        assert plane.steps(session).count("INSTANTIATING") <= 1
        ended_well(plane, session)
    assert controller.stop() == 0


CALLS = [
    ("", r"^/authenticate"),
    ("GET", r"^/labs$"),
    ("GET", r"^/labs/[^/]+$"),
    ("POST", r"^/import"),
    ("GET", r"/nodes$"),
    ("PATCH", r"/nodes/"),
    ("GET", r"/state$"),
    ("PUT", r"/start$"),
    ("GET", r"check_if_converged"),
    ("GET", r"interfaces"),
    ("GET", r"layer3_addresses"),
    ("GET", r"simulation_stats"),
    ("PUT", r"/stop$"),
    ("PUT", r"/wipe$"),
    ("DELETE", r"^/labs/[^/]+$"),
]


def fault_of(kind, path, method):
    if kind == "lost":
        return Fault(FaultKind.DROP, path, method, times=1, executed=True)
    return Fault(FaultKind.STATUS, path, method, times=2, status=int(kind))


@pytest.mark.parametrize("kind", ["503", "lost"])
def test_each_call_to_cml_fails_for_a_while(plane, worker, kind):
    """Every call fails some times in the life of one session; it takes longer, and ends as it should."""
    for method, path in CALLS:
        plane.simulator.admin.fail(worker, fault_of(kind, path, method))
    controller = plane.controller("patient")
    session = plane.ask(seconds=90)
    plane.until(session, "RUNNING", "FAILED", seconds=40)
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "next"})
    assert plane.until(session, "TERMINATED", "FAILED", seconds=45) == "TERMINATED"
    assert plane.steps(session).count("INSTANTIATING") == 1
    ended_well(plane, session)
    assert controller.stop() == 0


def test_an_import_that_is_refused_is_tried_again_and_given_up(plane, worker):
    refusal = Fault(
        FaultKind.STATUS, r"^/import", "POST", status=400, description="Bad Request: no such image"
    )
    for name in plane.workers():
        plane.simulator.admin.fail(name, refusal)
    controller = plane.controller("refused")
    session = plane.ask()
    assert plane.until(session, "FAILED", "TERMINATED", "RUNNING", seconds=40) == "FAILED"
    found = plane.session(session)
    assert (found["attempt"], found["transitions"][-1]["reason"].count("no such image")) == (3, 1)
    for name in plane.workers():
        plane.simulator.admin.heal(name)
    ended_well(plane, session)
    assert controller.stop() == 0


def test_a_lab_that_does_not_converge_is_given_up(plane, worker):
    never = Fault(FaultKind.REPLACE, "check_if_converged", body="false")
    for name in plane.workers():
        plane.simulator.admin.fail(name, never)
    controller = plane.controller("impatient", BOOT_TIMEOUT_SECONDS="2")
    session = plane.ask()
    plane.until(session, "INSTANTIATING")
    wait_until(lambda: plane.session(session)["attempt"] > 1, "another attempt is made", 20, plane.logs)
    for name in plane.workers():
        plane.simulator.admin.heal(name)
    plane.until(session, "RUNNING", "FAILED", seconds=30)
    reasons = [step["reason"] for step in plane.session(session)["transitions"]]
    assert any("did not converge within 2 s" in reason for reason in reasons)
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "seen"})
    plane.until(session, "TERMINATED", "FAILED")
    ended_well(plane, session)
    assert controller.stop() == 0


def test_a_lab_that_vanishes_fails_its_session(plane):
    controller = plane.controller("observant")
    session = plane.ask()
    plane.until(session, "RUNNING")
    (name,) = [each for each, found in plane.workers().items() if session in str(found["labs"])]
    plane.simulator.admin.remove(name)
    assert plane.until(session, "FAILED", "TERMINATED", seconds=30) == "FAILED"
    assert "vanished" in plane.session(session)["transitions"][-1]["reason"]
    ended_well(plane, session)
    assert controller.stop() == 0


def test_lcm_restarted_while_sessions_live(plane, worker):
    """LCM is away while one session boots, one runs and one comes to its end."""
    controller = plane.controller("faithful")
    slow = Fault(FaultKind.LATENCY, "check_if_converged", seconds=1.0)
    ending, running = plane.ask(seconds=9), plane.ask(seconds=25)
    plane.until(ending, "RUNNING")
    plane.until(running, "RUNNING")
    plane.simulator.admin.fail(worker, slow)
    booting = plane.ask(seconds=25)
    plane.until(booting, "INSTANTIATING")
    plane.restart_lcm()
    plane.simulator.admin.heal(worker)
    for session in (ending, booting, running):
        assert plane.until(session, "TERMINATED", "FAILED", seconds=45) == "TERMINATED"
        ended_well(plane, session)
    assert controller.spooled() == 0
    assert controller.stop() == 0


def test_what_happens_while_lcm_is_away_is_kept_on_disk(plane, worker):
    controller = plane.controller("archivist")
    session = plane.ask(seconds=7)
    plane.until(session, "RUNNING")
    web = plane.lcm.processes("gunicorn")
    for pid in web:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: controller.spooled() > 0, "the observation is kept", 40, plane.logs)
        assert plane.labs(session)
        controller.kill()
        controller.start()
        time.sleep(1)
        assert controller.spooled() > 0
    finally:
        for pid in web:
            os.kill(pid, signal.SIGCONT)
    assert plane.until(session, "TERMINATED", "FAILED", seconds=45) == "TERMINATED"
    ended_well(plane, session)
    wait_until(lambda: controller.spooled() == 0, "everything was sent", 15, plane.logs)
    assert controller.stop() == 0
