"""Moving a waiting session to another pool in the API."""

from __future__ import annotations

import pytest

from lcm.domain.lifecycle import SessionStatus
from scheduling.models import Phase
from tests.support.capacity_setup import pool_named

MOVE = {"pool": "cml-us", "reason": "It is nearer"}


@pytest.fixture
def move(api, operator, other_pool):
    client = api(operator)
    return lambda session, **change: client.post(
        f"/api/lablet-sessions/{session.pk}/move/", {**MOVE, **change}, format="json"
    )


def test_it_waits_in_the_other_pool(move, session):
    answer = move(session)
    assert answer.status_code == 200, answer.json()
    found = answer.json()
    assert (found["id"], found["pool"], found["status"]) == (str(session.pk), "cml-us", "PENDING")
    assert session.reservations.get(phase=Phase.PENDING).pool.name == "cml-us"


def test_controllers_see_it_in_its_new_pool_alone(api, move, session, controller, other_controller):
    address = f"/api/lablet-sessions/{session.pk}/"
    assert [api(each).get(address).status_code for each in (controller, other_controller)] == [200, 404]
    move(session)
    assert [api(each).get(address).status_code for each in (controller, other_controller)] == [404, 200]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"pool": "nowhere"}, "pool"),
        ({"pool": "off"}, "pool"),
        ({"pool": "eve"}, "pool"),
        ({"pool": "cml-eu"}, "pool"),
        ({"pool": ""}, "pool"),
        ({"pool": "x" * 64}, "pool"),
        ({"pool": "a\x00b"}, "pool"),
        ({"reason": ""}, "reason"),
        ({"priority": 90}, "priority"),
    ],
)
def test_an_unsuitable_value_is_rejected_by_field(move, session, change, field):
    pool_named("off", enabled=False)
    pool_named("eve", system="eve-ng")
    answer = move(session, **change)
    assert answer.status_code == 400
    assert list(answer.json()["details"]) == [field]
    session.refresh_from_db()
    assert session.pool == "cml-eu"


@pytest.mark.parametrize("status", [each for each in SessionStatus if each != SessionStatus.PENDING])
def test_only_a_pending_session_is_moved(move, session_in, status):
    answer = move(session_in(status))
    assert answer.status_code == 409
    assert answer.json()["details"] == {"status": status}


def test_a_repeat_with_the_same_key_is_answered_alike(api, operator, session, other_pool):
    client = api(operator)
    address = f"/api/lablet-sessions/{session.pk}/move/"
    first, second = (
        client.post(address, MOVE, format="json", HTTP_IDEMPOTENCY_KEY="move-it") for _ in range(2)
    )
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()


def test_it_costs_a_fixed_number_of_queries(move, session, django_assert_max_num_queries):
    with django_assert_max_num_queries(35):
        assert move(session).status_code == 200
