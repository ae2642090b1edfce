"""API of the access sheet of a session."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.dateparse import parse_datetime

from lcm.models import LabletSession
from scheduling.models import PortAllocation, Slot, SlotState
from tests.support.capacity_setup import put_session_on

QUERY_LIMIT = 12


@pytest.fixture
def running(session, slot, now) -> LabletSession:
    """A running session with a serial port on a worker with an address, and no port for its other node."""
    Slot.objects.filter(pk=slot.pk).update(endpoint="https://cml-1.example.org")
    put_session_on(slot, session, now)
    PortAllocation.objects.create(slot=slot, port=2036, name="r1_serial", session=session)
    LabletSession.objects.filter(pk=session.pk).update(status="RUNNING")
    return session


def address_of(session):
    return f"/api/lablet-sessions/{session.pk}/access/"


def test_a_running_session_has_the_addresses_of_its_nodes(api, viewer, running, slot):
    body = api(viewer).get(address_of(running)).json()
    assert (body["state"], body["message"], body["warnings"]) == ("open", "", [])
    assert body["workers"] == [
        {
            "slot_id": str(slot.pk),
            "slot": "cml-eu-01",
            "state": "READY",
            "interruption_deadline": None,
            "host": "cml-1.example.org",
            "console": "https://cml-1.example.org",
        }
    ]
    nodes = {node["label"]: node for node in body["nodes"]}
    assert set(nodes) == {"r1", "r2", "host"}
    assert nodes["r1"]["slot"] == "cml-eu-01"
    assert nodes["r1"]["addresses"] == [
        {
            "name": "r1_serial",
            "protocol": "serial",
            "transport": "tcp",
            "inside": None,
            "host": "cml-1.example.org",
            "port": 2036,
            "url": "telnet://cml-1.example.org:2036",
        }
    ]
    (other,) = nodes["host"]["addresses"]
    assert (other["port"], other["url"]) == (None, "")


def test_a_waiting_session_has_a_message_and_no_nodes(api, viewer, session):
    body = api(viewer).get(address_of(session)).json()
    assert (body["state"], body["nodes"], body["workers"]) == ("waiting", [], [])
    assert "when the session has a slot" in body["message"]


def test_an_interrupted_slot_is_a_warning_with_its_deadline(api, viewer, running, slot, now):
    deadline = now + timedelta(minutes=2)
    Slot.objects.filter(pk=slot.pk).update(state=SlotState.DRAINING, interruption_deadline=deadline)
    body = api(viewer).get(address_of(running)).json()
    assert parse_datetime(body["workers"][0]["interruption_deadline"]) == deadline
    assert "The provider" in body["warnings"][0]


def test_a_controller_sees_the_sessions_of_its_pools_only(api, running, controller, other_controller):
    codes = [api(each).get(address_of(running)).status_code for each in (controller, other_controller)]
    assert codes == [200, 404]


def test_the_access_sheet_needs_few_queries(api, viewer, running, django_assert_max_num_queries):
    client = api(viewer)
    client.get(address_of(running))
    with django_assert_max_num_queries(QUERY_LIMIT):
        client.get(address_of(running))
