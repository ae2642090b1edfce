"""A session over real HTTP, processes and a broker: placed, imported, run, observed, removed."""

import re
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from lcm.cml.simulator.edits import HIGHEST
from tests.support.control_plane import wait_until
from tests.support.factories import LAB
from tests.support.simulator import Fault, FaultKind

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("controller")]

ALL_STEPS = [
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
    process = plane.controller("steady")
    yield process
    if process.is_running:
        assert process.stop() == 0
    assert process.spooled() == 0


def check_cleaned_up(plane, session):
    assert plane.labs(session) == []
    assert plane.ports_of(session) == []


def collected_at(plane, session):
    steps = {step["to_status"]: step["at"] for step in plane.session(session)["transitions"]}
    return datetime.fromisoformat(steps["COLLECTING"])


def lab_of(plane, session):
    """Return the worker of the session's lab, and the lab."""
    (found,) = [
        (worker, lab_id)
        for worker, each in plane.workers().items()
        for lab_id, lab in each["labs"].items()
        if session in lab["title"]
    ]
    return found


def ports_on(plane, worker):
    slots = plane.call("GET", "slots/?pool=cml-eu&page_size=50").json()["results"]
    (slot,) = [slot["id"] for slot in slots if slot["instance_id"] == worker]
    return plane.call("GET", f"slots/{slot}").json()["ports"]


@contextmanager
def ports_from(plane, first):
    """Sessions of the pool get ports from this number on."""
    pools = plane.call("GET", "pools/?page_size=50").json()["results"]
    (pool,) = [pool for pool in pools if pool["name"] == "cml-eu"]
    previous_ports = {"first_port": pool["first_port"], "last_port": pool["last_port"]}
    temporary_ports = {"first_port": first, "last_port": 65_535}
    plane.call("PATCH", f"pools/{pool['id']}", temporary_ports).raise_for_status()
    try:
        yield
    finally:
        plane.call("PATCH", f"pools/{pool['id']}", previous_ports).raise_for_status()


def series(controller, session):
    return re.findall(
        rf'lcm_kernel_utilization{{[^}}]*session_id="{session}"[^}}]*}} \S+', controller.metrics()
    )


def test_a_session_completes(plane, controller):
    session = plane.run(seconds=9, left=4)
    assert len(plane.labs(session)) == 1
    wait_until(lambda: series(controller, session), "its figures can be scraped", 60)
    found = "\n".join(series(controller, session))
    assert {'metric="cpu_util"', 'metric="mem"'} <= set(re.findall(r'metric="\w+"', found))
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
    assert plane.steps(session) == ALL_STEPS
    check_cleaned_up(plane, session)
    wait_until(lambda: not series(controller, session), "its series are gone", 60)


def test_ports_are_in_the_tags_before_the_lab_starts(plane, controller):
    session = plane.request_session()
    plane.until(session, "RUNNING")
    worker, lab_id = lab_of(plane, session)
    address = plane.simulator.admin.address_of(worker)
    token = httpx.post(
        f"{address}/api/v0/authenticate", json={"username": "admin", "password": "simulated"}
    ).json()
    nodes = httpx.get(
        f"{address}/api/v0/labs/{lab_id}/nodes",
        params={"data": "true"},
        headers={"Authorization": f"Bearer {token}"},
    ).json()
    tags = sorted(tag for node in nodes for tag in node["tags"])
    ports = plane.ports_of(session)
    assert len(ports) == 2
    assert {int(tag.split(":")[1]) for tag in tags} == set(ports)
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "test done"})
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
    check_cleaned_up(plane, session)


def test_an_edited_lab_drifts_and_its_port_is_not_allocated(plane, controller):
    # The port added by the edit is the next one that a session would get.
    with ports_from(plane, HIGHEST - 2):
        session = plane.request_session(pool="cml-eu")
        plane.until(session, "RUNNING")
        worker, lab_id = lab_of(plane, session)
        assert sorted(plane.ports_of(session)) == [HIGHEST - 2, HIGHEST - 1]
        plane.simulator.admin.edit_lab(worker, lab_id, "add_node")
        assert plane.call("POST", f"lablet-sessions/{session}/observe-resources").status_code == 202
        wait_until(lambda: plane.session(session)["port_drift_detected"], "the drift shows", 60, plane.logs)
        leaked = [(port["port"], port["session"]) for port in ports_on(plane, worker) if port["leaked"]]
        assert (HIGHEST, session) in leaked
        following = plane.request_session(pool="cml-eu")
        plane.until(following, "RUNNING")
        assert lab_of(plane, following)[0] == worker
        assert sorted(plane.ports_of(following)) == [HIGHEST + 1, HIGHEST + 2]
    for each in (session, following):
        plane.call("POST", f"lablet-sessions/{each}/cancel", {"reason": "test done"})
        assert plane.until(each, "TERMINATED", "FAILED") == "TERMINATED"
        check_cleaned_up(plane, each)


def test_a_session_that_waits_for_its_user_runs_on_arrival(plane, controller):
    session = plane.request_session(definition=plane.known["waiting"])
    plane.until(session, "READY")
    time.sleep(2.5)
    assert plane.status(session) == "READY"
    assert plane.call("POST", f"lablet-sessions/{session}/arrive").status_code == 200
    plane.until(session, "RUNNING")
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "done"})
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"


def test_a_spread_session_has_a_lab_on_each_worker(plane):
    controller = plane.controller("two-handed", "cml-small", NAME="two-handed")
    session = plane.request_session(definition=plane.known["apart"])
    plane.until(session, "RUNNING")
    names = {node["node_label"] for node in plane.session(session)["kernels"]}
    labs = [set(each["labs"]) for each in plane.workers("cml-small").values()]
    assert [len(found) for found in labs] == [1, 1]
    assert len(plane.ports_of(session)) == 2
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "test done"})
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
    check_cleaned_up(plane, session)
    observation = plane.call("GET", f"lablet-sessions/{session}/resource-observations").json()
    assert {node["label"] for node in observation["observed_resources"]["nodes"]} == names
    assert any(
        "links between workers are missing" in step["reason"]
        for step in plane.session(session)["transitions"]
    )
    assert controller.stop() == 0


def test_an_extension_during_the_final_observation_is_honoured(plane, controller):
    """LCM has confirmed the end of the timeslot to the controller when the extension is requested."""
    session = plane.run(seconds=7, left=2)
    worker, _ = lab_of(plane, session)
    slow = Fault(FaultKind.LATENCY, "layer3_addresses", "GET", times=1, seconds=6)
    plane.simulator.admin.fail(worker, slow)
    wait_until(lambda: not plane.workers()[worker]["faults"], "it is being observed", 60, plane.logs)
    new_end = datetime.now(UTC) + timedelta(seconds=10)
    response = plane.call("POST", f"lablet-sessions/{session}/extend", {"ends_at": new_end.isoformat()})
    assert response.status_code == 200, response.text
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
    assert f"LCM rejected lablet-sessions/{session}/transitions: 409" in controller.log
    assert plane.steps(session) == ALL_STEPS
    assert collected_at(plane, session) >= new_end


def test_heartbeats_report_version_and_capacity(plane, controller):
    plane.worker()

    def reported():
        slots = plane.call("GET", "slots/?pool=cml-eu&state=READY").json()["results"]
        return slots and slots[0]["last_heartbeat"] and slots[0]["version"].startswith("2.10")

    wait_until(reported, "the heartbeat has come", 60, plane.logs)


def test_a_foreign_lab_is_never_changed_and_its_ports_are_reserved(plane, controller):
    worker = plane.worker()
    address = plane.simulator.admin.address_of(worker)
    token = httpx.post(
        f"{address}/api/v0/authenticate", json={"username": "admin", "password": "simulated"}
    ).json()
    headers = {"Authorization": f"Bearer {token}"}
    foreign_lab = LAB.replace("serial:5041", "serial:7777")
    httpx.post(
        f"{address}/api/v0/import?title=somebody's", content=foreign_lab, headers=headers
    ).raise_for_status()
    orphan = "lcm:00000000-0000-4000-8000-000000000000:1 gone"
    httpx.post(f"{address}/api/v0/import?title={orphan}", content=LAB, headers=headers).raise_for_status()

    def leaked():
        slots = plane.call("GET", "slots/?pool=cml-eu&page_size=50").json()["results"]
        rows = [plane.call("GET", f"slots/{slot['id']}").json()["ports"] for slot in slots]
        return {port["port"] for ports in rows for port in ports if port["leaked"]}

    wait_until(lambda: 7777 in leaked(), "the port is reported as leaked", 60, plane.logs)
    wait_until(lambda: not plane.labs("00000000"), "the orphan is removed", 60, plane.logs)
    titles = [lab["title"] for lab in plane.simulator.admin.controllers()[worker]["labs"].values()]
    assert "somebody's" in titles


def test_a_second_controller_with_a_wrong_clock_waits_and_takes_over(plane, controller):
    second = plane.controller("stand-by", NAME="stand-by", clock_ahead=600)
    try:
        wait_until(
            lambda: "cml-eu is served by controller-cml-eu" in second.log, "the second controller waits", 60
        )
        session = plane.run(seconds=6)
        assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
        assert session[:8] not in second.log
        assert controller.stop() == 0
        after = plane.run(seconds=6)
        assert plane.until(after, "TERMINATED", "FAILED") == "TERMINATED"
        assert after[:8] in second.log
        assert "clock: the clock of this machine is 600 s ahead of LCM's" in second.log
        assert re.search(r"^lcm_controller_clock_skew_seconds (600|599)\.", second.metrics(), re.MULTILINE)
        assert collected_at(plane, after) >= datetime.fromisoformat(plane.session(after)["ends_at"])
    finally:
        assert second.stop() == 0
