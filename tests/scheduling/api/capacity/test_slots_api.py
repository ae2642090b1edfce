"""Slots in the API: actions of users and reports of controllers."""

from datetime import timedelta

import pytest

from lcm.models import ChangeLog
from scheduling.models import LaunchAttempt, PortAllocation, Slot, SlotState
from tests.support.capacity_setup import make_slot, put_on, reserve

SLOTS = "/api/slots/"
INTERNAL = "/api/internal/slots/"
S = SlotState


def slot_names(client, **query):
    return {row["name"] for row in client.get(SLOTS, query).json()["results"]}


def test_a_slot_shows_its_leases_ports_and_attempts(api, viewer, slot, now):
    reservation = reserve(slot.pool, now)
    put_on(slot, reservation, now)
    PortAllocation.objects.create(slot=slot, port=2500, name="r1_vnc", leaked=True)
    LaunchAttempt.objects.create(slot=slot, token="t", requested_at=now, outcome="launched")
    body = api(viewer).get(f"{SLOTS}{slot.pk}/").json()
    assert (body["name"], body["pool"], body["state"], body["lease_count"]) == (
        "cml-eu-01",
        "cml-eu",
        "READY",
        1,
    )
    assert body["reservations"] == [str(reservation.pk)]
    assert [(port["port"], port["leaked"]) for port in body["ports"]] == [(2500, True)]
    assert [attempt["outcome"] for attempt in body["attempts"]] == ["launched"]
    assert "token" not in body["attempts"][0]


def test_slots_are_filtered(api, viewer, slot, other_slot):
    make_slot(slot.pool, 2, S.ERROR)
    client = api(viewer)
    assert slot_names(client) == {"cml-eu-01", "cml-eu-02", "cml-us-01"}
    assert slot_names(client, pool="cml-us") == {"cml-us-01"}
    assert slot_names(client, state="ERROR") == {"cml-eu-02"}
    assert client.get(SLOTS, {"state": "BUSY"}).status_code == 400
    assert client.get(SLOTS, {"colour": "red"}).status_code == 400


@pytest.mark.parametrize(
    ("action", "old", "fields", "new"),
    [
        ("cordon", S.READY, {}, {"cordoned": True}),
        ("uncordon", S.READY, {"cordoned": True}, {"cordoned": False}),
        ("drain", S.READY, {}, {"state": "DRAINING", "reason": "bad fan"}),
        ("retry", S.ERROR, {}, {"state": "EMPTY"}),
        ("terminate", S.READY, {}, {"state": "TERMINATING"}),
    ],
)
def test_an_operator_action_records_its_reason(api, operator, pool, action, old, fields, new):
    slot = make_slot(pool, 1, old, **fields)
    response = api(operator).post(f"{SLOTS}{slot.pk}/{action}/", {"reason": "bad fan"})
    assert response.status_code == 200
    assert {name: response.json()[name] for name in new} == new
    entry = ChangeLog.objects.filter(object_id=str(slot.pk)).latest("id")
    assert (entry.actor, entry.reason) == ("otto", "bad fan")


@pytest.mark.parametrize(
    ("action", "old", "fields"),
    [
        ("cordon", S.EMPTY, {}),
        ("uncordon", S.READY, {}),
        ("drain", S.DRAINING, {}),
        ("retry", S.READY, {}),
        ("terminate", S.READY, {"lease_count": 1}),
    ],
)
def test_an_action_that_does_not_fit_the_state_is_rejected(api, operator, pool, action, old, fields):
    slot = make_slot(pool, 1, old, **fields)
    response = api(operator).post(f"{SLOTS}{slot.pk}/{action}/", {"reason": "bad fan"})
    assert (response.status_code, response.json()["code"]) == (409, "state_conflict")
    assert "cml-eu-01" in response.json()["message"]
    assert Slot.objects.get(pk=slot.pk).state == old


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "x" * 501}])
def test_an_action_requires_a_reason(api, operator, slot, body):
    response = api(operator).post(f"{SLOTS}{slot.pk}/drain/", body)
    assert response.status_code == 400
    assert "reason" in response.json()["details"]


def test_a_controller_sees_the_slots_of_its_pools(api, controller, other_controller, slot, other_slot):
    assert slot_names(api(controller)) == {"cml-eu-01"}
    assert slot_names(api(other_controller)) == {"cml-us-01"}
    assert slot_names(api(controller), pool="cml-us") == set()
    assert api(controller).get(f"{SLOTS}{other_slot.pk}/").status_code == 404
    assert api(controller).post(f"{SLOTS}{slot.pk}/drain/", {"reason": "x"}).status_code == 403


def test_a_heartbeat_is_recorded(api, controller, slot):
    response = api(controller).post(f"{INTERNAL}{slot.pk}/heartbeat", {"version": "2.9.1"})
    assert response.status_code == 200
    slot.refresh_from_db()
    assert slot.version == "2.9.1"
    assert slot.last_heartbeat is not None
    api(controller).post(f"{INTERNAL}{slot.pk}/heartbeat", {})
    slot.refresh_from_db()
    assert slot.version == "2.9.1"


def test_an_interruption_is_recorded_once(api, controller, slot, now):
    path = f"{INTERNAL}{slot.pk}/interruption"
    deadline = now + timedelta(seconds=120)
    response = api(controller).post(path, {"deadline": deadline.isoformat()})
    assert response.status_code == 200
    later = deadline + timedelta(hours=1)
    assert api(controller).post(path, {"deadline": later.isoformat()}).status_code == 200
    slot.refresh_from_db()
    assert slot.interruption_deadline == deadline
    entries = ChangeLog.objects.filter(event="slot.interrupted")
    assert [entry.actor for entry in entries] == ["controller controller-eu"]


def test_a_slot_without_a_worker_cannot_be_interrupted(api, controller, pool, now):
    slot = make_slot(pool, 1, S.EMPTY)
    response = api(controller).post(f"{INTERNAL}{slot.pk}/interruption", {"deadline": now.isoformat()})
    assert response.status_code == 409
    assert response.json()["message"] == "cml-eu-01 is empty and has no worker that can be interrupted."


@pytest.mark.parametrize("body", [{}, {"deadline": "soon"}, {"deadline": None}])
def test_an_interruption_requires_a_deadline(api, controller, slot, body):
    assert api(controller).post(f"{INTERNAL}{slot.pk}/interruption", body).status_code == 400


@pytest.mark.parametrize(
    ("step", "body"), [("heartbeat", {}), ("interruption", {"deadline": "2030-01-01T00:00:00Z"})]
)
def test_a_slot_of_another_controller_is_not_found(api, other_controller, slot, step, body):
    response = api(other_controller).post(f"{INTERNAL}{slot.pk}/{step}", body)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    slot.refresh_from_db()
    assert (slot.last_heartbeat, slot.interruption_deadline) == (None, None)


@pytest.mark.parametrize("path", ["/api/pools/", "/api/reservations/", "/api/ticks/"])
def test_endpoints_for_users_reject_controllers(api, controller, path):
    assert api(controller).get(path).status_code == 403
