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


def test_a_moved_session_waits_in_the_other_pool(move, session):
    response = move(session)
    assert response.status_code == 200, response.json()
    body = response.json()
    assert (body["id"], body["pool"], body["status"]) == (str(session.pk), "cml-us", "PENDING")
    assert session.reservations.get(phase=Phase.PENDING).pool.name == "cml-us"


def test_only_controllers_of_the_new_pool_see_a_moved_session(
    api, move, session, controller, other_controller
):
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
def test_an_invalid_value_is_rejected_with_its_field(move, session, change, field):
    pool_named("off", enabled=False)
    pool_named("eve", system="eve-ng")
    response = move(session, **change)
    assert response.status_code == 400
    assert list(response.json()["details"]) == [field]
    session.refresh_from_db()
    assert session.pool == "cml-eu"


@pytest.mark.parametrize("status", [each for each in SessionStatus if each != SessionStatus.PENDING])
def test_only_a_pending_session_can_be_moved(move, session_in, status):
    response = move(session_in(status))
    assert response.status_code == 409
    assert response.json()["details"] == {"status": status}


def test_a_repeat_with_the_same_idempotency_key_returns_the_same_response(api, operator, session, other_pool):
    client = api(operator)
    address = f"/api/lablet-sessions/{session.pk}/move/"
    first, second = (
        client.post(address, MOVE, format="json", HTTP_IDEMPOTENCY_KEY="move-it") for _ in range(2)
    )
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()


def test_a_move_needs_a_bounded_number_of_queries(move, session, django_assert_max_num_queries):
    with django_assert_max_num_queries(35):
        assert move(session).status_code == 200
