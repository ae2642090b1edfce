"""Reasons that a session reports when something fails. test_at_each_call checks that it always ends."""

import os
import signal
import time

import pytest

from tests.support.control_plane import wait_until
from tests.support.simulator import Fault, FaultKind

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("controller")]


@pytest.fixture
def worker(plane):
    name = plane.worker()
    yield name
    plane.end_controllers()
    plane.simulator.admin.clear_faults(name)


def check_cleaned_up(plane, session):
    wait_until(lambda: plane.labs(session) == [], "the lab is gone", 60, plane.logs)
    assert plane.ports_of(session) == []


def test_a_rejected_import_is_retried_and_then_fails(plane, worker):
    refusal = Fault(
        FaultKind.STATUS, r"^/import", "POST", status=400, description="Bad Request: no such image"
    )
    for name in plane.workers():
        plane.simulator.admin.fail(name, refusal)
    controller = plane.controller("refused")
    session = plane.request_session()
    assert plane.until(session, "FAILED", "TERMINATED", "RUNNING") == "FAILED"
    found = plane.session(session)
    assert (found["attempt"], found["transitions"][-1]["reason"].count("no such image")) == (3, 1)
    for name in plane.workers():
        plane.simulator.admin.clear_faults(name)
    check_cleaned_up(plane, session)
    assert controller.stop() == 0


def test_a_lab_that_does_not_converge_fails(plane, worker):
    never_converged = Fault(FaultKind.REPLACE, "check_if_converged", body="false")
    for name in plane.workers():
        plane.simulator.admin.fail(name, never_converged)
    controller = plane.controller("impatient", BOOT_TIMEOUT_SECONDS="2")
    session = plane.request_session()
    plane.until(session, "INSTANTIATING")
    wait_until(lambda: plane.session(session)["attempt"] > 1, "another attempt is made", 60, plane.logs)
    for name in plane.workers():
        plane.simulator.admin.clear_faults(name)
    plane.until(session, "RUNNING", "FAILED")
    reasons = [step["reason"] for step in plane.session(session)["transitions"]]
    assert any("did not converge within 2 s" in reason for reason in reasons)
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "test done"})
    plane.until(session, "TERMINATED", "FAILED")
    check_cleaned_up(plane, session)
    assert controller.stop() == 0


def test_a_lab_that_disappears_fails_its_session(plane):
    controller = plane.controller("observant")
    session = plane.request_session()
    plane.until(session, "RUNNING")
    (name,) = [each for each, found in plane.workers().items() if session in str(found["labs"])]
    plane.simulator.admin.remove(name)
    assert plane.until(session, "FAILED", "TERMINATED") == "FAILED"
    assert "disappeared" in plane.session(session)["transitions"][-1]["reason"]
    check_cleaned_up(plane, session)
    assert controller.stop() == 0


def test_posts_during_an_lcm_outage_are_kept_on_disk(plane, worker):
    controller = plane.controller("archivist")
    session = plane.run(seconds=7, left=2)
    web = plane.lcm.processes("gunicorn")
    for pid in web:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: controller.spooled() > 0, "the observation is kept", 60, plane.logs)
        assert plane.labs(session)
        controller.kill()
        controller.start()
        time.sleep(1)
        assert controller.spooled() > 0
    finally:
        for pid in web:
            os.kill(pid, signal.SIGCONT)
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
    check_cleaned_up(plane, session)
    wait_until(lambda: controller.spooled() == 0, "everything was sent", 60, plane.logs)
    assert controller.stop() == 0
