"""Requests of controllers: sessions on their slots, failures, leases, heartbeats, boot tokens."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from lcm.cml.topology.parser import parse_topology
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ApiToken, ChangeLog
from lcm.services.definitions import create_definition
from lcm.services.session_transitions import transition_session
from scheduling.capacity.launcher import boot_token
from scheduling.models import (
    LaunchAttempt,
    Pool,
    PortAllocation,
    ProcessLease,
    Reservation,
    ReservationPart,
    Slot,
    SlotState,
)
from scheduling.services.assignment import assign_slots
from scheduling.services.slots import move_slot
from tests.support import extensions
from tests.support.factories import WAY_TO, make_session
from tests.support.fleet import placement_verdict

S = SessionStatus
SESSIONS = "/api/internal/lablet-sessions/"
pytestmark = pytest.mark.django_db


@pytest.fixture
def slot(active_definition):
    pool = Pool.objects.get(name="cml-eu")
    size = {"cpu_cores": 64, "memory_gb": 256, "storage_gb": 2000, "max_leases": 20}
    return Slot.objects.create(
        pool=pool, number=1, state=SlotState.READY, instance_id="i-1", endpoint="https://cml-1", **size
    )


@pytest.fixture
def on_slot(session_in, slot, now):
    """`on_slot(status)`: a session that was placed on the slot and reached the status."""

    def make(status=S.SCHEDULED, **fields):
        session = session_in(S.PENDING, **fields)
        claim = Reservation.objects.get(session=session, phase="PENDING")
        assert assign_slots(slot.pool, [placement_verdict(slot.pool, claim, slot)], now=now)
        session.refresh_from_db()
        for step in WAY_TO[status][1:]:
            transition_session(session=session, to=step, actor=SYSTEM, now=now)
        return session

    return make


def listed(client, **params):
    response = client.get(SESSIONS, params)
    assert response.status_code == 200, response.json()
    return response.json()["results"]


def test_a_session_contains_the_data_its_controller_needs(api, controller, on_slot, slot):
    session = on_slot()
    (row,) = listed(api(controller))
    assert row["id"] == str(session.pk)
    assert (row["status"], row["attempt"], row["pool"]) == ("SCHEDULED", 1, "cml-eu")
    assert row["slot"] == {"id": str(slot.pk), "name": "cml-eu-01", "endpoint": "https://cml-1"}
    assert set(row["allocated_ports"]) == {"r1_serial", "host_pat"}
    assert [port["name"] for port in row["port_template"]] == ["r1_serial", "host_pat"]
    assert set(row["kernels"]) == {"r1", "r2", "host"}
    assert row["topology"].strip().startswith("lab:")
    assert (row["requests"], row["awaits_arrival"], row["arrived_at"]) == ({}, False, None)
    assert row["revision"] == 1


def test_a_definition_without_a_topology_runs_on_a_controller_that_knows_it(
    api, operator, controller, project, slot, as_admin, now
):
    web = create_definition(
        name="web-shop",
        requirements={"cpu_cores": Decimal(1), "memory_gb": Decimal(1)},
        nodes=[{"label": "web"}, {"label": "db"}],
        port_template=[
            {"node_label": "web", "protocol": "ssh", "outside": 22, "inside": None, "transport": "tcp"}
        ],
        pool="cml-eu",
        placement="spread",
        status="active",
        actor=as_admin,
        now=now,
    )
    session = make_session(web, project, operator, now=now)
    claim = Reservation.objects.get(session=session)
    assert assign_slots(slot.pool, [placement_verdict(slot.pool, claim, slot)], now=now)
    part = ReservationPart.objects.get()
    ReservationPart.objects.update(kernels=["db"])
    size = {"cpu_cores": 64, "memory_gb": 256, "storage_gb": 2000, "max_leases": 20}
    other = Slot.objects.create(pool=slot.pool, number=2, state=SlotState.READY, instance_id="i-2", **size)
    part.pk, part.slot, part.kernels = uuid4(), other, ["web"]
    part.save(force_insert=True)
    (row,) = listed(api(controller))
    assert (row["topology"], set(row["kernels"])) == ("", {"web", "db"})
    assert [part["nodes"] for part in row["parts"]] == [["db"], ["web"]]
    assert set(row["allocated_ports"]) == {"web_ssh"}
    for status in ("INSTANTIATING", "READY", "RUNNING"):
        moved = api(controller).post(f"{SESSIONS}{session.pk}/transitions", {"to_status": status})
        assert moved.status_code == 200, moved.json()


def test_a_spread_session_has_one_part_per_slot(api, controller, active_definition, on_slot, slot):
    active_definition.placement = "spread"
    active_definition.save()
    session = on_slot()
    size = {"cpu_cores": 64, "memory_gb": 256, "storage_gb": 2000, "max_leases": 20}
    other = Slot.objects.create(
        pool=slot.pool, number=2, state=SlotState.READY, instance_id="i-2", endpoint="https://cml-2", **size
    )
    part = ReservationPart.objects.get()
    (whole,) = listed(api(controller))
    assert (whole["parts"], whole["dropped_links"]) == ([], [])
    ReservationPart.objects.update(kernels=["host", "r1"])
    part.pk, part.slot, part.kernels = uuid4(), other, ["r2"]
    part.save(force_insert=True)
    (row,) = listed(api(controller))
    first, second = row["parts"]
    assert (first["slot"]["id"], first["nodes"]) == (str(slot.pk), ["host", "r1"])
    assert second["slot"] == {"id": str(other.pk), "name": "cml-eu-02", "endpoint": "https://cml-2"}
    assert [node.label for node in parse_topology(second["topology"]).nodes] == ["r2"]
    assert row["dropped_links"] == ["r1 – r2"]
    transition_session(session=session, to=S.INSTANTIATING, actor=SYSTEM, now=session.created_at)
    transition_session(session=session, to=S.READY, actor=SYSTEM, now=session.created_at)
    (row,) = listed(api(controller))
    assert [part["topology"] for part in row["parts"]] == [None, None]


@pytest.mark.parametrize(
    ("status", "is_listed", "topology"),
    [
        (S.SCHEDULED, True, True),
        (S.INSTANTIATING, True, True),
        (S.READY, True, False),
        (S.RUNNING, True, False),
        (S.COLLECTING, True, False),
        (S.STOPPING, True, False),
        (S.TERMINATED, False, False),
    ],
)
def test_only_sessions_on_a_slot_are_listed(api, controller, on_slot, status, is_listed, topology):
    on_slot(status)
    rows = listed(api(controller))
    assert len(rows) == is_listed
    assert [bool(row["topology"]) for row in rows] == [topology] * is_listed


def test_sessions_can_be_selected_by_id(api, controller, on_slot):
    first, second, _ = on_slot(), on_slot(), on_slot()
    rows = listed(api(controller), ids=f"{first.pk},{second.pk}")
    assert {row["id"] for row in rows} == {str(first.pk), str(second.pk)}


@pytest.mark.parametrize("ids", ["x", "1,2", ",".join(["00000000-0000-0000-0000-000000000000"] * 201)])
def test_invalid_ids_are_rejected(api, controller, ids):
    response = api(controller).get(SESSIONS, {"ids": ids})
    assert (response.status_code, list(response.json()["details"])) == (400, ["ids"])


def test_requests_of_people_are_returned(api, controller, on_slot, now):
    session = on_slot(S.RUNNING)
    with extensions.replaced(open_requests={"observe": lambda ids: dict.fromkeys(ids, now)}):
        (row,) = listed(api(controller))
    assert set(row["requests"]) == {"observe"}
    assert row["id"] == str(session.pk)


def test_many_sessions_need_as_many_queries_as_few(api, controller, on_slot, django_assert_max_num_queries):
    for _ in range(5):
        on_slot()
    with django_assert_max_num_queries(8):
        assert len(listed(api(controller))) == 5


def test_a_transition_for_an_earlier_attempt_is_rejected(api, controller, on_slot):
    session = on_slot(S.INSTANTIATING)
    address = f"{SESSIONS}{session.pk}/transitions"
    body = {"from_status": "INSTANTIATING", "to_status": "READY", "attempt": 7}
    assert api(controller).post(address, body).status_code == 409
    assert api(controller).post(address, {**body, "attempt": 1}).status_code == 200


FAILURES = [
    (S.SCHEDULED, 1, True, "PENDING"),
    (S.SCHEDULED, 3, True, "FAILED"),
    (S.INSTANTIATING, 1, True, "PENDING"),
    (S.INSTANTIATING, 3, True, "FAILED"),
    (S.READY, 1, True, "FAILED"),
    (S.READY, 1, False, "STOPPING"),
    (S.RUNNING, 1, True, "FAILED"),
    (S.RUNNING, 1, False, "STOPPING"),
    (S.COLLECTING, 1, True, "FAILED"),
    (S.COLLECTING, 1, False, "STOPPING"),
    (S.STOPPING, 1, False, "FAILED"),
]


@pytest.mark.parametrize(("status", "attempt", "lab_removed", "new_status"), FAILURES)
def test_a_failure_leads_to_the_status_that_lcm_chooses(
    api, controller, on_slot, settings, status, attempt, lab_removed, new_status
):
    settings.CONFIG["SESSION_ATTEMPTS"] = 3
    session = on_slot(status)
    type(session).objects.filter(pk=session.pk).update(attempt=attempt)
    body = {"reason": "no disk", "attempt": attempt, "from_status": status, "lab_removed": lab_removed}
    response = api(controller).post(f"{SESSIONS}{session.pk}/failures", body)
    assert (response.status_code, response.json()["status"]) == (200, new_status)
    assert session.transitions.filter(reason="no disk").exists()
    if new_status == "FAILED":
        assert not PortAllocation.objects.filter(session=session).exists()
    if new_status == "PENDING":
        assert response.json()["attempt"] == attempt + 1
        assert Reservation.objects.filter(session=session, phase="PENDING").count() == 1


@pytest.mark.parametrize("status", [S.PENDING, S.TERMINATED, S.FAILED])
def test_a_session_without_a_lab_cannot_fail(api, controller, session_in, status):
    session = session_in(status)
    response = api(controller).post(f"{SESSIONS}{session.pk}/failures", {"reason": "x"})
    assert response.status_code == 409


def test_another_pool_s_controller_gets_404_everywhere(api, other_controller, on_slot, slot):
    session, client = on_slot(), api(other_controller)
    posts = {
        f"{SESSIONS}{session.pk}/transitions": {"to_status": "INSTANTIATING"},
        f"{SESSIONS}{session.pk}/failures": {"reason": "x"},
        f"/api/internal/slots/{slot.pk}/heartbeat": {},
        f"/api/internal/slots/{slot.pk}/interruption": {"deadline": "2030-01-01T00:00:00Z"},
    }
    assert [client.post(path, body, format="json").status_code for path, body in posts.items()] == [404] * 4
    assert listed(client) == []
    assert client.get("/api/internal/slots").json()["results"] == []
    session.refresh_from_db()
    assert session.status == "SCHEDULED"


# --- slots -----------------------------------------------------------------------------------------------


def test_a_controller_lists_the_slots_that_have_a_worker(api, controller, slot):
    pool = slot.pool
    Slot.objects.create(pool=pool, number=2, max_leases=1, cpu_cores=1, memory_gb=1, storage_gb=1)
    (row,) = api(controller).get("/api/internal/slots").json()["results"]
    assert (row["name"], row["endpoint"], row["state"]) == ("cml-eu-01", "https://cml-1", "READY")


def report(client, slot, **body):
    response = client.post(f"/api/internal/slots/{slot.pk}/heartbeat", body, format="json")
    assert response.status_code == 200, response.json()
    slot.refresh_from_db()


def test_a_heartbeat_updates_version_and_capacity(api, controller, slot):
    report(
        api(controller), slot, version="2.10.0+build.3", capacity={"cpu_cores": "40", "memory_gb": "128.00"}
    )
    assert slot.last_heartbeat is not None
    assert slot.version == "2.10.0+build.3"
    assert slot.reported_capacity == {"cpu_cores": "40.00", "memory_gb": "128.00"}
    assert slot.cpu_cores == 64


def leaked(slot):
    return list(PortAllocation.objects.filter(slot=slot, leaked=True).values_list("port", flat=True))


def test_leaked_ports_stay_reserved_until_observed_free(api, controller, slot, on_slot):
    session, client = on_slot(), api(controller)
    allocated = set(PortAllocation.objects.filter(session=session).values_list("port", flat=True))
    ports = [{"port": port, "name": "old lab r1"} for port in (3000, 3001, min(allocated))]
    report(client, slot, leaked_ports=ports)
    assert leaked(slot) == [3000, 3001]
    report(client, slot)
    assert leaked(slot) == [3000, 3001]
    report(client, slot, leaked_ports=ports[1:2])
    assert leaked(slot) == [3001]
    report(client, slot, leaked_ports=[])
    assert leaked(slot) == []
    assert set(PortAllocation.objects.filter(session=session).values_list("port", flat=True)) == allocated
    assert ChangeLog.objects.filter(event="slot.ports_leaked").count() == 3


def test_an_old_observation_does_not_release_a_port_reserved_since(
    api, controller, slot, on_slot, time_machine, now
):
    session, client = on_slot(S.STOPPING), api(controller)
    allocated = sorted(PortAllocation.objects.filter(session=session).values_list("port", flat=True))
    failed = {"reason": "stuck", "lab_removed": False}
    client.post(f"/api/internal/lablet-sessions/{session.pk}/failures", failed, format="json")
    report(client, slot, leaked_ports=[], ports_observed_seconds_ago=12.5)
    assert leaked(slot) == allocated
    time_machine.move_to(now + timedelta(minutes=7))
    report(client, slot, leaked_ports=[], ports_observed_seconds_ago=12.5)
    assert leaked(slot) == []


def test_a_leaked_port_is_not_allocated(api, controller, slot, on_slot):
    first = slot.pool.first_port
    report(
        api(controller), slot, leaked_ports=[{"port": first, "name": "x"}, {"port": first + 1, "name": "y"}]
    )
    session = on_slot()
    allocated = set(PortAllocation.objects.filter(session=session).values_list("port", flat=True))
    assert allocated == {first + 2, first + 3}


@pytest.mark.parametrize(
    "body",
    [
        {"leaked_ports": [{"port": 0, "name": "x"}]},
        {"leaked_ports": [{"port": 70_000, "name": "x"}]},
        {"leaked_ports": [{"port": 5}]},
        {"leaked_ports": [], "ports_observed_seconds_ago": -1},
        {"leaked_ports": [], "ports_observed_seconds_ago": "just now"},
        {"capacity": {"cpu": 4}},
        {"load": 3},
    ],
)
def test_an_invalid_heartbeat_changes_nothing(api, controller, slot, body):
    response = api(controller).post(f"/api/internal/slots/{slot.pk}/heartbeat", body, format="json")
    assert response.status_code == 400
    slot.refresh_from_db()
    assert (slot.last_heartbeat, leaked(slot)) == (None, [])


# --- leases ----------------------------------------------------------------------------------------------


def hold(client, holder):
    response = client.post("/api/internal/leases/hold", {"holder": holder})
    assert response.status_code == 200, response.json()
    return {row["pool"]: (row["held"], row["holder"]) for row in response.json()}


def test_one_controller_serves_a_pool(api, controller, slot):
    client = api(controller)
    assert hold(client, "one") == {"cml-eu": (True, "one")}
    assert hold(client, "two") == {"cml-eu": (False, "one")}
    assert hold(client, "one") == {"cml-eu": (True, "one")}


def test_an_expired_lease_can_be_acquired(api, controller, slot, now):
    client = api(controller)
    hold(client, "one")
    ProcessLease.objects.update(expires_at=now - timedelta(seconds=1))
    assert hold(client, "two") == {"cml-eu": (True, "two")}
    assert hold(client, "one") == {"cml-eu": (False, "two")}


def test_a_released_lease_can_be_acquired_immediately(api, controller, slot):
    client = api(controller)
    hold(client, "one")
    assert client.post("/api/internal/leases/release", {"holder": "two"}).status_code == 204
    assert hold(client, "two") == {"cml-eu": (False, "one")}
    assert client.post("/api/internal/leases/release", {"holder": "one"}).status_code == 204
    assert hold(client, "two") == {"cml-eu": (True, "two")}


def test_pools_are_leased_independently(api, controller, other_controller, slot):
    hold(api(controller), "one")
    assert hold(api(other_controller), "two") == {"cml-us": (True, "two")}


# --- boot tokens -----------------------------------------------------------------------------------------


@pytest.fixture
def launched(slot, now):
    Slot.objects.filter(pk=slot.pk).update(state=SlotState.BOOTING)
    return LaunchAttempt.objects.create(slot=slot, token="t" * 32, requested_at=now, outcome="launched")


def redeem(api, slot, token):
    return api(None).post("/api/internal/boot", {"slot_id": str(slot.pk), "token": token})


def test_a_boot_token_is_exchanged_for_a_key_once(api, slot, launched):
    response = redeem(api, slot, boot_token(launched))
    assert response.status_code == 200, response.json()
    key = response.json()["key"]
    client = api(None)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    assert len(client.get("/api/internal/slots").json()["results"]) == 1
    repeated = redeem(api, slot, boot_token(launched))
    assert (repeated.status_code, repeated.json()["code"]) == (404, "not_found")
    assert ApiToken.objects.filter(launch_attempts=launched).count() == 1


def test_the_key_expires_with_the_instance(api, slot, launched, now):
    redeem(api, slot, boot_token(launched))
    slot.refresh_from_db()
    move_slot(slot=slot, to=SlotState.EMPTY, now=now)
    assert ApiToken.objects.get(launch_attempts=launched).revoked_at == now


@pytest.mark.parametrize("wrong", ["", "t" * 32, "0" * 64, "tök€n", "\N{SNOWMAN}" * 64])
def test_a_wrong_boot_token_is_rejected(api, slot, launched, wrong):
    assert redeem(api, slot, wrong).status_code in (400, 404)
    assert not ApiToken.objects.exists()


def test_a_lone_surrogate_is_not_a_boot_token(api, slot, launched):
    body = f'{{"slot_id": "{slot.pk}", "token": "\\ud800"}}'
    assert api(None).generic("POST", "/api/internal/boot", body, "application/json").status_code == 400


def test_the_token_of_an_earlier_launch_is_rejected(api, slot, launched, now):
    LaunchAttempt.objects.create(
        slot=slot, token="u" * 32, requested_at=now + timedelta(seconds=9), outcome="launched"
    )
    assert redeem(api, slot, boot_token(launched)).status_code == 404


def test_a_slot_without_an_instance_redeems_nothing(api, slot, launched):
    Slot.objects.filter(pk=slot.pk).update(state=SlotState.EMPTY)
    assert redeem(api, slot, boot_token(launched)).status_code == 404


@pytest.mark.usefixtures("one_window")
def test_guessing_boot_tokens_is_throttled_and_never_blocks_a_worker(api, slot, launched, settings):
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "2/min"
    assert [redeem(api, slot, "0" * 64).status_code for _ in range(3)] == [404, 404, 429]
    assert redeem(api, slot, boot_token(launched)).status_code == 200
    assert redeem(api, slot, boot_token(launched)).status_code == 429


# --- arrival ---------------------------------------------------------------------------------------------


def test_the_first_arrival_counts(api, operator, controller, on_slot, time_machine, now):
    session = on_slot(S.READY)
    client = api(operator)
    first = client.post(f"/api/lablet-sessions/{session.pk}/arrive").json()["arrived_at"]
    time_machine.move_to(now + timedelta(minutes=5))
    assert client.post(f"/api/lablet-sessions/{session.pk}/arrive").json()["arrived_at"] == first
    assert listed(api(controller))[0]["arrived_at"] == first


def test_an_ended_session_accepts_no_arrival(api, operator, session_in):
    session = session_in(S.CANCELLED)
    assert api(operator).post(f"/api/lablet-sessions/{session.pk}/arrive").status_code == 409
