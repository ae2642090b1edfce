"""Pools and ticks in the API."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InUse
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog
from lcm.services.session_transitions import transition_session
from scheduling.capacity.runtimes.base import ORPHAN_GRACE
from scheduling.models import (
    AttemptOutcome,
    LaunchAttempt,
    Phase,
    Pool,
    Reservation,
    Slot,
    SlotState,
    TickRun,
)
from scheduling.services import pools, reservations
from tests.support.capacity_setup import SIZE, make_slot, put_on, reserve

POOLS = "/api/pools/"


def pool_names(client, **query):
    return [row["name"] for row in client.get(POOLS, query).json()["results"]]


def test_a_pool_shows_policy_usage_and_demand(api, viewer, pool, now):
    put_on(make_slot(pool, 1), reserve(pool, now), now)
    make_slot(pool, 2, SlotState.BOOTING)
    reserve(pool, now - timedelta(minutes=4))
    body = api(viewer).get(f"{POOLS}{pool.pk}/").json()
    keys = ("name", "state", "ready", "occupied", "leases", "lease_limit", "waiting", "max_slots")
    assert {name: body[name] for name in keys} == {
        "name": "cml-eu",
        "state": "enabled",
        "ready": 1,
        "occupied": 2,
        "leases": 1,
        "lease_limit": 10,
        "waiting": 1,
        "max_slots": 6,
    }
    assert body["oldest_waiting_since"] == (now - timedelta(minutes=4)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_pools_are_filtered_by_state(api, viewer, pool, other_pool, now):
    Pool.objects.filter(pk=pool.pk).update(backoff_until=now + timedelta(minutes=5))
    client = api(viewer)
    assert pool_names(client) == ["cml-eu", "cml-us"]
    assert pool_names(client, state="backing off") == ["cml-eu"]
    assert pool_names(client, q="us") == ["cml-us"]
    assert client.get(POOLS, {"state": "asleep"}).status_code == 400


def test_a_pool_is_created(api, admin, db):
    payload = {"name": "gpu-lab", "system": "gpu", "max_slots": 3, "runtime_settings": {"boot_seconds": 9}}
    response = api(admin).post(POOLS, payload)
    assert response.status_code == 201
    body = response.json()
    assert (body["name"], body["runtime"], body["max_slots"], body["ready"]) == ("gpu-lab", "simulated", 3, 0)
    assert ChangeLog.objects.get(event="pool.created").object_id == body["id"]


def test_a_repeated_request_creates_one_pool(api, admin, db):
    client = api(admin)
    payload = {"name": "gpu-lab"}
    first = client.post(POOLS, payload, headers={"Idempotency-Key": "k"})
    again = client.post(POOLS, payload, headers={"Idempotency-Key": "k"})
    assert first.json() == again.json()
    assert Pool.objects.count() == 1


WRONG = [
    ({"name": "cml-eu"}, "name", "already exists"),
    ({"name": "Not A Slug"}, "name", "letters"),
    ({}, "name", "required"),
    ({"name": "new", "min_slots": 9, "max_slots": 2}, "__all__", "The minimum cannot exceed the maximum"),
    ({"name": "new", "min_slots": -1}, "min_slots", "greater than or equal to 0"),
    ({"name": "new", "max_slots": 10**30}, "max_slots", "less than or equal to 20000"),
    ({"name": "new", "cpu_cores": "lots"}, "cpu_cores", "number"),
    ({"name": "new", "memory_gb": "-3"}, "memory_gb", "greater than or equal to 0"),
    ({"name": "new", "memory_gb": "0"}, "__all__", "A slot needs CPU and memory."),
    ({"name": "new", "runtime": "docker"}, "runtime", "There is no runtime “docker”"),
    (
        {"name": "new", "runtime_settings": {"boot_second": 1}},
        "runtime_settings.boot_second",
        "did you mean “boot_seconds”?",
    ),
    ({"name": "new", "runtime_settings": [1]}, "runtime_settings", "dictionary"),
    ({"name": "new", "runtime_settings": {"boot_seconds": -1}}, "runtime_settings.boot_seconds", "from 0"),
    ({"name": "new", "spot_policy": "sometimes"}, "spot_policy", "not a valid choice"),
    ({"name": "new", "max_slot": 3}, "max_slot", "Unknown field."),
    ({"name": "new", "first_port": 9000}, "__all__", "Ports must be between 1024 and 65535"),
]


@pytest.mark.parametrize(("payload", "field", "message"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_invalid_input_is_rejected_and_nothing_is_stored(api, admin, pool, payload, field, message):
    response = api(admin).post(POOLS, payload)
    assert (response.status_code, response.json()["code"]) == (400, "invalid")
    assert message in " ".join(response.json()["details"][field])
    assert list(Pool.objects.values_list("name", flat=True)) == ["cml-eu"]


def test_a_pool_is_changed(api, admin, pool):
    Pool.objects.filter(pk=pool.pk).update(stopped_reason="no template")
    response = api(admin).patch(f"{POOLS}{pool.pk}/", {"max_slots": 9, "reason": "More courses"})
    assert response.status_code == 200
    assert (response.json()["max_slots"], response.json()["stopped_reason"]) == (9, "")
    entry = ChangeLog.objects.get(event="pool.edited")
    assert (entry.reason, entry.before["max_slots"], entry.after["max_slots"]) == ("More courses", 6, 9)


@pytest.mark.parametrize("change", [{"enabled": False}, {"max_slots": 5}])
def test_high_impact_changes_require_a_reason(api, admin, pool, change):
    response = api(admin).patch(f"{POOLS}{pool.pk}/", change)
    assert (response.status_code, list(response.json()["details"])) == (400, ["reason"])
    pool.refresh_from_db()
    assert (pool.enabled, pool.max_slots) == (True, 6)
    assert api(admin).patch(f"{POOLS}{pool.pk}/", {**change, "reason": "exams"}).status_code == 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"min_slots": 99}, "__all__"),
        ({"name": "other"}, "name"),
        ({"runtime": "static"}, "runtime"),
        ({"stopped_reason": ""}, "stopped_reason"),
        ({"runtime_settings": {"nonsense": 1}}, "runtime_settings.nonsense"),
    ],
)
def test_an_invalid_change_is_rejected(api, admin, pool, change, field):
    response = api(admin).patch(f"{POOLS}{pool.pk}/", change)
    assert response.status_code == 400
    assert field in response.json()["details"]
    pool.refresh_from_db()
    assert (pool.name, pool.min_slots, pool.runtime_settings) == ("cml-eu", 0, {})


def test_ticks_are_listed_and_filtered(api, viewer, pool, other_pool, now):
    TickRun.objects.create(pool=pool, started_at=now, duration_ms=7, counts={"placed": 2})
    TickRun.objects.create(pool=other_pool, started_at=now, duration_ms=9, errors={"place": "gone"})
    client = api(viewer)
    rows = client.get("/api/ticks/", {"pool": "cml-eu"}).json()["results"]
    assert [(row["pool"], row["duration_ms"], row["counts"]) for row in rows] == [
        ("cml-eu", 7, {"placed": 2})
    ]
    failed = client.get("/api/ticks/", {"failed": "true"}).json()["results"]
    assert [row["errors"] for row in failed] == [{"place": "gone"}]
    assert len(client.get("/api/ticks/", {"failed": "false"}).json()["results"]) == 1


def test_an_empty_pool_is_deleted_and_its_name_stays_in_history(api, admin, pool, session_in, now, settings):
    session = session_in(SessionStatus.RUNNING)
    slot = pool.slots.get_or_create(number=1, defaults=SIZE | {"state": SlotState.READY})[0]
    reserve(pool, now)
    address = f"{POOLS}{pool.pk}/"
    assert api(admin).delete(address).json()["details"] == {"reason": ["This field is required."]}
    refused = api(admin).delete(f"{address}?reason=moved")
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    assert refused.json()["details"] == {"slots": 1, "sessions": 1, "reservations": 1}
    assert "1 slot, 1 session, 1 reservation in use" in refused.json()["message"]

    for status in (SessionStatus.STOPPING, SessionStatus.TERMINATED):
        transition_session(session=session, to=status, actor=SYSTEM, now=now)
    pool.reservations.filter(session=None).update(phase=Phase.CANCELLED)
    Slot.objects.filter(pk=slot.pk).update(state=SlotState.EMPTY)
    resolved_at = now - ORPHAN_GRACE - timedelta(seconds=settings.CONFIG["RECONCILE_INTERVAL"])
    lost = slot.attempts.create(
        token="t",
        requested_at=now,
        outcome=AttemptOutcome.LOST,
        finished_at=resolved_at + timedelta(minutes=1),
    )
    refused = api(admin).delete(f"{address}?reason=moved")
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    possible_at = (now + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert refused.json()["details"] == {"lost_launches": 1, "possible_at": possible_at}
    assert "1 launch without a response" in refused.json()["message"]
    LaunchAttempt.objects.filter(pk=lost.pk).update(finished_at=resolved_at)
    deleted = api(admin).delete(f"{address}?reason=moved")
    assert deleted.status_code == 204, deleted.json()
    assert api(admin).get(address).status_code == 404
    assert not Reservation.objects.exists()
    assert api(admin).get(f"/api/lablet-sessions/{session.pk}/").json()["pool"] == pool.name
    entry = ChangeLog.objects.get(event="pool.deleted")
    assert (entry.object_label, entry.reason, entry.before["name"]) == (pool.name, "moved", pool.name)


def test_an_interrupted_deletion_can_be_repeated(pool, now, monkeypatch):
    for _ in range(5):
        reserve(pool, now)
    pool.reservations.update(phase=Phase.CANCELLED)
    monkeypatch.setattr(pools, "DELETED_AT_ONCE", 2)

    def kill(*args):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(pools, "loggable_fields", kill)
        with pytest.raises(SystemExit):
            pools.delete_pool(pool=pool, reason="moved", actor=SYSTEM, now=now)
    assert list(Pool.objects.all()) == [pool]
    assert not Reservation.objects.exists()
    pools.delete_pool(pool=pool, reason="moved", actor=SYSTEM, now=now)
    assert not Pool.objects.exists()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_no_slot_is_launched_while_its_pool_is_deleted(pool, monkeypatch):
    """The tick changes an empty slot to LAUNCHING; that must wait for the deletion and then find no slot."""
    make_slot(pool, 1, SlotState.EMPTY)
    errors = []

    def launch():
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '200ms'")
            Slot.objects.filter(state=SlotState.EMPTY).update(state=SlotState.LAUNCHING)
        except OperationalError as error:
            errors.append(str(error))
        finally:
            connections.close_all()

    def launch_meanwhile(*args):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(launch).result(20)
        return "none"

    monkeypatch.setattr(pools, "count_text", launch_meanwhile)
    pools.delete_pool(pool=pool, reason="moved", actor=SYSTEM, now=timezone.now())
    assert "lock timeout" in errors[0]
    assert not Slot.objects.exists()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_deleting_a_pool_does_not_wait_for_a_locked_slot(pool, now):
    """The reconciler changes a slot and then its pool; to wait for the slot would be a deadlock."""
    make_slot(pool, 1, SlotState.EMPTY)

    def delete():
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '3s'")
            pools.delete_pool(pool=pool, reason="moved", actor=SYSTEM, now=now)
        finally:
            connections.close_all()

    with transaction.atomic(), ThreadPoolExecutor(1) as thread:
        Slot.objects.update(reason="changed")
        with pytest.raises(InUse, match="1 slot in use"):
            thread.submit(delete).result(20)


@pytest.mark.django_db(transaction=True)
def test_a_request_whose_pool_is_deleted_before_its_commit_gets_409(
    api, operator, pool, other_pool, session_in, now, monkeypatch
):
    waiting = session_in(SessionStatus.PENDING, pool=pool.name)
    session = {
        "definition": waiting.definition_id,
        "project": waiting.project_id,
        "pool": other_pool.name,
        "ends_at": now + timedelta(hours=1),
    }

    def replace(pool):
        Pool.objects.filter(pk=pool.pk).update(id=uuid4())

    monkeypatch.setattr(reservations, "trigger_tick", replace)
    for address, body in (
        ("/api/lablet-sessions/", session),
        ("/api/reservations/", {"pool": other_pool.name, "holder": "build-7", "resources": {"cpu_cores": 1}}),
        (f"/api/lablet-sessions/{waiting.pk}/move/", {"pool": other_pool.name, "reason": "closer"}),
    ):
        response = api(operator).post(address, body, format="json")
        assert (response.status_code, response.json()["code"]) == (409, "state_conflict"), response.json()
    assert Reservation.objects.get().session == waiting
