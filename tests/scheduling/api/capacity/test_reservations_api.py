"""Reservations without a session in the API."""

from datetime import datetime, timedelta

import pytest
import time_machine

from lcm.models import ChangeLog
from scheduling.models import Phase, Pool, Reservation, Slot
from tests.support.capacity_setup import make_slot, put_on, reserve

PATH = "/api/reservations/"
REQUEST = {"pool": "cml-eu", "resources": {"cpu_cores": "2", "memory_gb": "4"}}


def test_capacity_is_reserved_in_a_pool(api, operator, pool):
    response = api(operator).post(PATH, {**REQUEST, "holder": "build-7", "ttl": 60, "priority": 90})
    assert response.status_code == 201
    body = response.json()
    assert (body["pool"], body["holder"], body["phase"], body["priority"]) == (
        "cml-eu",
        "build-7",
        "PENDING",
        90,
    )
    assert body["resources"] == {
        "cpu_cores": "2.00",
        "memory_gb": "4.00",
        "storage_gb": "0.00",
        "gpu": "0.00",
    }
    lifetime = datetime.fromisoformat(body["expires_at"]) - datetime.fromisoformat(body["created_at"])
    assert lifetime == timedelta(seconds=60)


def test_the_caller_holds_a_reservation_for_twenty_minutes_by_default(api, operator, pool):
    body = api(operator).post(PATH, REQUEST).json()
    assert (body["holder"], body["ttl_seconds"], body["priority"]) == ("otto", 1200, 50)


def test_capacity_is_reserved_for_a_system(api, operator, pool, other_pool, now):
    reserve(pool, now)
    body = api(operator).post(PATH, {"system": "cml", "resources": {"cpu_cores": 1}}).json()
    assert body["pool"] == "cml-us"


WRONG = [
    ({"ttl": -5}, "ttl", "must be between 1 and 86400 seconds"),
    ({"ttl": 0}, "ttl", "must be between 1 and 86400 seconds"),
    ({"ttl": 86_401}, "ttl", "must be between 1 and 86400 seconds"),
    ({"ttl": "soon"}, "ttl", "integer"),
    ({"pool": "nowhere"}, "pool", "There is no pool “nowhere”."),
    ({"pool": "", "system": "k8s"}, "pool", "No pool for k8s is enabled."),
    ({"pool": ""}, "pool", "Specify a pool or a system."),
    (
        {"resources": {"cpu_cores": 999}},
        "pool",
        "No slot of cml-eu has 999 cores; the largest has 16.",
    ),
    (
        {"pool": "", "system": "cml", "resources": {"memory_gb": 9999}},
        "pool",
        "No cml pool has a slot with 9,999 GB memory; the largest has 64.",
    ),
    ({"resources": {"cpu_cores": -1}}, "resources.cpu_cores", "0 or more"),
    ({"resources": {}}, "resources", "Request at least one resource."),
    ({"resources": {"cpu_cores": 0}}, "resources", "Request at least one resource."),
    ({"priority": 7}, "priority", "not a valid choice"),
    ({"holder": "x" * 101}, "holder", "100 characters"),
    ({"time_to_live": 60}, "time_to_live", "Unknown field."),
]


@pytest.mark.parametrize(("change", "field", "message"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_invalid_input_is_rejected_and_nothing_is_stored(api, operator, pool, change, field, message):
    response = api(operator).post(PATH, {**REQUEST, **change})
    assert response.status_code == 400
    assert message in " ".join(response.json()["details"][field])
    assert not Reservation.objects.exists()


def test_an_unknown_resource_is_rejected(api, operator, pool):
    response = api(operator).post(PATH, {**REQUEST, "resources": {"cores": 2}})
    assert response.status_code == 400
    assert response.json()["details"] == {"resources": {"cores": ["Unknown field."]}}


def test_a_disabled_pool_rejects_reservations(api, operator, pool):
    Pool.objects.update(enabled=False)
    response = api(operator).post(PATH, REQUEST)
    assert response.json()["details"] == {"pool": ["The pool cml-eu is disabled."]}


def test_a_renewal_extends_the_expiry(api, operator, pool):
    client = api(operator)
    with time_machine.travel("2026-03-01T10:00:00Z", tick=False) as clock:
        created = client.post(PATH, {**REQUEST, "ttl": 60}).json()
        clock.shift(50)
        renewed = client.post(f"{PATH}{created['id']}/renew/").json()
    assert created["expires_at"] == "2026-03-01T10:01:00Z"
    assert renewed["expires_at"] == "2026-03-01T10:01:50Z"


def test_a_renewal_accepts_its_own_ttl(api, operator, pool):
    client = api(operator)
    with time_machine.travel("2026-03-01T10:00:00Z", tick=False):
        created = client.post(PATH, {**REQUEST, "ttl": 60}).json()
        path = f"{PATH}{created['id']}/renew/"
        renewed = client.post(path, {"ttl": 3600}).json()
        assert (renewed["expires_at"], renewed["ttl_seconds"]) == ("2026-03-01T11:00:00Z", 60)
        for wrong in (0, 86_401, "soon", None):
            response = client.post(path, {"ttl": wrong})
            assert (response.status_code, list(response.json()["details"])) == (400, ["ttl"])
        assert client.post(path, {"seconds": 60}).status_code == 400
    assert Reservation.objects.get().expires_at == datetime.fromisoformat(renewed["expires_at"])


def test_a_renewal_after_expiry_is_rejected(api, operator, pool):
    client = api(operator)
    with time_machine.travel("2026-03-01T10:00:00Z", tick=False) as clock:
        created = client.post(PATH, {**REQUEST, "ttl": 60}).json()
        clock.shift(61)
        response = client.post(f"{PATH}{created['id']}/renew/")
    assert (response.status_code, response.json()["code"]) == (409, "state_conflict")
    assert "has expired and cannot be renewed." in response.json()["message"]


def test_release_frees_the_lease_and_is_idempotent(api, operator, pool, now):
    slot, reservation = make_slot(pool, 1), reserve(pool, now)
    put_on(slot, reservation, now)
    client, path = api(operator), f"{PATH}{reservation.pk}/release/"
    first, again = client.post(path), client.post(path)
    assert (first.status_code, first.json()["phase"]) == (200, Phase.RELEASED)
    assert again.json() == first.json()
    assert Slot.objects.get(pk=slot.pk).lease_count == 0
    assert ChangeLog.objects.filter(event="reservation.released").count() == 1


def test_cancel_requires_a_reason_and_works_once(api, operator, pool, now):
    client, path = api(operator), f"{PATH}{reserve(pool, now).pk}/cancel/"
    assert client.post(path, {}).status_code == 400
    assert client.post(path, {"reason": "forgotten"}).json()["phase"] == Phase.CANCELLED
    again = client.post(path, {"reason": "forgotten"})
    assert again.status_code == 409
    assert "is cancelled already." in again.json()["message"]


@pytest.mark.parametrize(("step", "body"), [("renew", {}), ("release", {}), ("cancel", {"reason": "x"})])
def test_the_reservation_of_a_session_cannot_be_changed_directly(api, operator, session, step, body):
    reservation = session.reservations.get()
    response = api(operator).post(f"{PATH}{reservation.pk}/{step}/", body)
    assert response.status_code == 409
    assert "belongs to a session" in response.json()["message"]
    reservation.refresh_from_db()
    assert reservation.phase == Phase.PENDING


def test_reservations_are_listed_and_filtered(api, viewer, pool, session, now):
    reserve(pool, now, "build-1")
    client = api(viewer)

    def holders(**query):
        return sorted(row["holder"] for row in client.get(PATH, query).json()["results"])

    assert holders() == ["", "build-1"]
    assert holders(session=session.pk) == [""]
    assert holders(holder="build-1") == ["build-1"]
    assert holders(phase="READY") == []
    assert holders(active="true", pool="cml-eu") == ["", "build-1"]
    assert client.get(PATH, {"session": "nonsense"}).status_code == 400


def test_a_repeated_request_creates_one_reservation(api, operator, pool):
    client = api(operator)
    responses = [client.post(PATH, REQUEST, headers={"Idempotency-Key": "k"}).json() for _ in range(2)]
    assert responses[0] == responses[1]
    assert Reservation.objects.count() == 1
