"""Faults at each call and each stage: every session ends and leaves nothing behind.

Each scenario has its own session and worker; all scenarios of a test run concurrently.
"""

from datetime import UTC, datetime, timedelta

import pytest

from tests.end_to_end.controller.crowd import POOL, Crowd, one_session_per_worker
from tests.support.simulator import Fault, FaultKind

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("controller")]

# Calls of the controller to CML: bring a lab up, observe it, remove it.
TO_READY = {
    "authenticate": ("POST", r"^/authenticate"),
    "labs": ("GET", r"^/labs$"),
    "import": ("POST", r"^/import"),
    "nodes": ("GET", r"/nodes$"),
    "tags": ("PATCH", r"/nodes/"),
    "state": ("GET", r"/state$"),
    "start": ("PUT", r"/start$"),
    "converged": ("GET", r"check_if_converged"),
}
# Calls that identify the session's lab: the import's response, or else the title.
LOOKUPS = {"import": TO_READY["import"], "lab": ("GET", r"^/labs/[^/]+$")}
OBSERVATIONS = {
    "system_information": ("GET", r"^/system_information"),
    "system_stats": ("GET", r"^/system_stats"),
    "topology": ("GET", r"/topology$"),
    "interfaces": ("GET", r"/interfaces$"),
    "addresses": ("GET", r"layer3_addresses"),
    "statistics": ("GET", r"simulation_stats"),
}
TO_THE_END = {
    "stop": ("PUT", r"/stop$"),
    "wipe": ("PUT", r"/wipe$"),
    "delete": ("DELETE", r"^/labs/[^/]+$"),
}
CALLS = TO_READY | LOOKUPS | OBSERVATIONS | TO_THE_END
# Calls during which a controller is killed: executed without a response, or not executed yet.
DEADLY = [
    *((name, True) for name in ("import", "tags", "start", *TO_THE_END)),
    ("import", False),
    ("delete", False),
]

ONCE = {
    "500": {"kind": FaultKind.STATUS, "status": 500, "times": 1},
    # As often as the client itself retries.
    "lost": {"kind": FaultKind.DROP, "executed": True, "times": 2},
    "truncated": {"kind": FaultKind.TRUNCATE, "times": 1},
}
# Without these calls a lab cannot be identified.
NAMES = {"kind": FaultKind.MISSING_FIELDS, "fields": ["id", "lab_title"], "times": 1}
# Permanent failures of a call. An empty response cannot be truncated.
EMPTY = {"start", *TO_THE_END}
PERMANENT = {
    "500": {"kind": FaultKind.STATUS, "status": 500},
    "dropped": {"kind": FaultKind.DROP},
    "truncated": {"kind": FaultKind.TRUNCATE},
}
WORKERS = 42
HELD = 8
CALM = {
    "HEARTBEAT_SECONDS": "20",
    "SURVEY_SECONDS": "3",
    "STATS_SECONDS": "3",
    "IMPORT_SETTLE_SECONDS": str(HELD + 1),
}


@pytest.fixture(scope="module")
def workers(plane):
    with one_session_per_worker(plane, WORKERS):
        yield


@pytest.fixture
def crowd(plane, workers):
    crowd = Crowd(plane)
    yield crowd
    plane.end_controllers()
    crowd.restore_workers()


def faults_at(calls, **effect):
    return [Fault(method=method, path=path, **effect) for method, path in calls.values()]


def test_each_call_fails_once_and_permanently(plane, crowd):
    """A session with one failure of each call takes longer and ends; so does one with a permanent failure."""
    for name, effect in ONCE.items():
        crowd.request(name, *faults_at(CALLS, **effect), seconds=300)
    crowd.request("nameless", *faults_at(LOOKUPS, **NAMES), seconds=300)
    # The lab is looked up only if the import returned no id.
    lost_import = faults_at({"import": CALLS["import"]}, **ONCE["lost"])
    for effect, fault in PERMANENT.items():
        crowd.request(f"blind, {effect}", *faults_at(OBSERVATIONS, **fault), seconds=300)
        crowd.request(f"lab, {effect}", *lost_import, *faults_at({"lab": CALLS["lab"]}, **fault), seconds=40)
        for name, call in (TO_READY | TO_THE_END).items():
            if effect != "truncated" or name not in EMPTY:
                seconds = 300 if name in TO_THE_END else 40
                crowd.request(f"{name}, {effect}", *faults_at({name: call}, **fault), seconds=seconds)
    once = [*ONCE, "nameless"]
    unobservable = [f"blind, {effect}" for effect in PERMANENT]
    unstoppable = [f"{name}, {effect}" for name in TO_THE_END for effect in ("500", "dropped")]
    crowd.place()
    settings = {"BOOT_TIMEOUT_SECONDS": "40", "STOP_TIMEOUT_SECONDS": "30", "OBSERVE_SECONDS": "3"}
    controller = plane.controller("patient", POOL, **CALM, **settings)
    crowd.until([*once, *unobservable, *unstoppable], "RUNNING")
    crowd.cancel([*once, *unobservable, *unstoppable])
    ended = crowd.check_all_end_normally()
    for name in once:
        assert (ended[name]["status"], ended[name]["attempt"]) == ("TERMINATED", 1), name
    assert {ended[name]["status"] for name in unobservable} == {"TERMINATED"}
    assert {ended[name]["status"] for name in unstoppable} == {"FAILED"}
    assert controller.stop() == 0


def hold(call, *, executed):
    """Return a fault that holds a call before or after it is executed."""
    method, path = CALLS[call]
    return Fault(FaultKind.LATENCY, path, method, times=1, seconds=HELD, executed=executed)


def kill_controller(plane, controller):
    controller.kill()
    controller.start()


def restart_lcm(plane, controller):
    plane.restart_lcm()


@pytest.mark.parametrize(
    ("disturb", "held_calls"),
    [
        (kill_controller, DEADLY),
        (restart_lcm, [("import", True), ("converged", False), ("stop", True), ("delete", False)]),
    ],
)
def test_sessions_survive_a_disturbance_at_each_stage(plane, crowd, disturb, held_calls):
    """Hold a session in each stage and in each call that changes something, then disturb all sessions."""
    starts_at = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
    crowd.request("SCHEDULED", starts_at=starts_at, seconds=300)
    crowd.request("READY", definition=plane.known["waiting"], seconds=300)
    crowd.request("RUNNING", seconds=300)
    for name in ("COLLECTING", "STOPPING"):
        crowd.request(name, hold("addresses", executed=False), seconds=300)
    for call, executed in held_calls:
        crowd.request(f"{call} {executed}", hold(call, executed=executed), seconds=300)
    ending_names = [
        "STOPPING",
        *(f"{call} {executed}" for call, executed in held_calls if call in TO_THE_END),
    ]
    crowd.place()
    controller = plane.controller("unlucky", POOL, **CALM, START_LEAD_SECONDS="0.1")
    crowd.until(["RUNNING", "COLLECTING", *ending_names], "RUNNING")
    crowd.until(["READY"], "READY")
    crowd.cancel(ending_names)
    begin_collecting(plane, crowd.sessions["COLLECTING"])
    crowd.until_faults_occurred()
    disturb(plane, controller)
    plane.call("POST", f"lablet-sessions/{crowd.sessions['READY']}/arrive")
    crowd.until(["SCHEDULED", "READY"], "RUNNING")
    crowd.cancel(name for name in crowd.sessions if name not in ending_names)
    for name, session in crowd.check_all_end_normally().items():
        assert (session["status"], session["attempt"]) == ("TERMINATED", 1), name
    assert controller.stop() == 0
    assert controller.spooled() == 0


def begin_collecting(plane, session):
    """Move to COLLECTING like a controller that ends before it posts its observation."""
    body = {
        "from_status": "RUNNING",
        "to_status": "COLLECTING",
        "attempt": 1,
        "reason": "the timeslot ended",
    }
    key = plane.known["controllers"][POOL]
    response = plane.call("POST", f"internal/lablet-sessions/{session}/transitions", body, key)
    assert response.status_code == 200, response.text
