"""Reservations without a session in the API."""

from datetime import datetime, timedelta

import pytest
import time_machine

from lcm.models import ChangeLog
from scheduling.models import Phase, Pool, Reservation, Slot
from tests.support.capacity_setup import make_slot, put_on, reserve

PATH = "/api/reservations/"
ASKED = {"pool": "cml-eu", "resources": {"cpu_cores": "2", "memory_gb": "4"}}


def test_capacity_is_reserved_in_a_pool(api, operator, pool):
    answer = api(operator).post(PATH, {**ASKED, "holder": "build-7", "ttl": 60, "priority": 90})
    assert answer.status_code == 201
    body = answer.json()
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
    life = datetime.fromisoformat(body["expires_at"]) - datetime.fromisoformat(body["created_at"])
    assert life == timedelta(seconds=60)


def test_the_caller_holds_it_for_twenty_minutes_by_default(api, operator, pool):
    body = api(operator).post(PATH, ASKED).json()
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
    ({"resources": {"cpu_cores": 999}}, "pool", "No slot of cml-eu can ever hold this: too little CPU."),
    (
        {"pool": "", "system": "cml", "resources": {"memory_gb": 9999}},
        "pool",
        "No pool for cml can hold this.",
    ),
    ({"resources": {"cpu_cores": -1}}, "resources.cpu_cores", "0 or more"),
    ({"resources": {}}, "resources", "Request at least one resource."),
    ({"resources": {"cpu_cores": 0}}, "resources", "Request at least one resource."),
    ({"priority": 7}, "priority", "not a valid choice"),
    ({"holder": "x" * 101}, "holder", "100 characters"),
    ({"time_to_live": 60}, "time_to_live", "Unknown field."),
]


@pytest.mark.parametrize(("change", "field", "said"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_bad_input_is_refused_and_stores_nothing(api, operator, pool, change, field, said):
    answer = api(operator).post(PATH, {**ASKED, **change})
    assert answer.status_code == 400
    assert said in " ".join(answer.json()["details"][field])
    assert not Reservation.objects.exists()


def test_an_unknown_resource_is_refused(api, operator, pool):
    answer = api(operator).post(PATH, {**ASKED, "resources": {"cores": 2}})
    assert answer.status_code == 400
    assert answer.json()["details"] == {"resources": {"cores": ["Unknown field."]}}


def test_a_pool_that_is_off_takes_none(api, operator, pool):
    Pool.objects.update(enabled=False)
    answer = api(operator).post(PATH, ASKED)
    assert answer.json()["details"] == {"pool": ["The pool cml-eu is disabled."]}


def test_renewing_keeps_it_alive(api, operator, pool):
    client = api(operator)
    with time_machine.travel("2026-03-01T10:00:00Z", tick=False) as clock:
        made = client.post(PATH, {**ASKED, "ttl": 60}).json()
        clock.shift(50)
        renewed = client.post(f"{PATH}{made['id']}/renew/").json()
    assert made["expires_at"] == "2026-03-01T10:01:00Z"
    assert renewed["expires_at"] == "2026-03-01T10:01:50Z"


def test_a_renewal_takes_a_time_of_its_own(api, operator, pool):
    client = api(operator)
    with time_machine.travel("2026-03-01T10:00:00Z", tick=False):
        made = client.post(PATH, {**ASKED, "ttl": 60}).json()
        path = f"{PATH}{made['id']}/renew/"
        renewed = client.post(path, {"ttl": 3600}).json()
        assert (renewed["expires_at"], renewed["ttl_seconds"]) == ("2026-03-01T11:00:00Z", 60)
        for wrong in (0, 86_401, "soon", None):
            answer = client.post(path, {"ttl": wrong})
            assert (answer.status_code, list(answer.json()["details"])) == (400, ["ttl"])
        assert client.post(path, {"seconds": 60}).status_code == 400
    assert Reservation.objects.get().expires_at == datetime.fromisoformat(renewed["expires_at"])


def test_a_renewal_after_expiry_is_refused(api, operator, pool):
    client = api(operator)
    with time_machine.travel("2026-03-01T10:00:00Z", tick=False) as clock:
        made = client.post(PATH, {**ASKED, "ttl": 60}).json()
        clock.shift(61)
        answer = client.post(f"{PATH}{made['id']}/renew/")
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")
    assert "has expired and cannot be renewed." in answer.json()["message"]


def test_releasing_gives_the_lease_back_and_may_be_done_twice(api, operator, pool, now):
    slot, reservation = make_slot(pool, 1), reserve(pool, now)
    put_on(slot, reservation, now)
    client, path = api(operator), f"{PATH}{reservation.pk}/release/"
    first, again = client.post(path), client.post(path)
    assert (first.status_code, first.json()["phase"]) == (200, Phase.RELEASED)
    assert again.json() == first.json()
    assert Slot.objects.get(pk=slot.pk).lease_count == 0
    assert ChangeLog.objects.filter(event="reservation_released").count() == 1


def test_cancelling_needs_a_reason_and_is_done_once(api, operator, pool, now):
    client, path = api(operator), f"{PATH}{reserve(pool, now).pk}/cancel/"
    assert client.post(path, {}).status_code == 400
    assert client.post(path, {"reason": "forgotten"}).json()["phase"] == Phase.CANCELLED
    again = client.post(path, {"reason": "forgotten"})
    assert again.status_code == 409
    assert "is cancelled already." in again.json()["message"]


@pytest.mark.parametrize(("step", "body"), [("renew", {}), ("release", {}), ("cancel", {"reason": "x"})])
def test_a_sessions_reservation_goes_with_the_session(api, operator, session, step, body):
    reservation = session.reservations.get()
    answer = api(operator).post(f"{PATH}{reservation.pk}/{step}/", body)
    assert answer.status_code == 409
    assert "belongs to a session" in answer.json()["message"]
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


def test_the_same_request_twice_reserves_once(api, operator, pool):
    client = api(operator)
    answers = [client.post(PATH, ASKED, headers={"Idempotency-Key": "k"}).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert Reservation.objects.count() == 1
