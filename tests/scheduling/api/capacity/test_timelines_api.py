"""Timelines in the API: the entries of an object, filtered by time and kind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.services.changelog import log_change
from tests.support.capacity_setup import make_slot, pool_named, put_session_on


@pytest.fixture
def slot(session, now):
    slot = make_slot(pool_named("cml-eu"), 1)
    put_session_on(slot, session, now)
    for event, hours in (("lost", 3), ("back", 2)):
        at = now - timedelta(hours=hours)
        log_change(slot, actor=SYSTEM, event=f"slot.heartbeat_{event}", message=event, now=at)
    return slot


def events(response):
    assert response.status_code == 200, response.content
    return [row["event"] for row in response.json()["results"]]


def test_a_timeline_lists_the_entries_of_a_slot_newest_first(api, viewer, slot, now):
    address = f"/api/slots/{slot.pk}/timeline/"
    assert events(api(viewer).get(address, {"until": now})) == ["slot.heartbeat_back", "slot.heartbeat_lost"]
    until = {"until": now - timedelta(hours=2, minutes=30), "kind": "heartbeats"}
    assert events(api(viewer).get(address, until)) == ["slot.heartbeat_lost"]
    assert events(api(viewer).get(address, {"until": now, "kind": "ports"})) == []


def test_pools_and_sessions_have_a_timeline(api, viewer, slot, session, now):
    query = {"since": now - timedelta(hours=4), "until": now + timedelta(days=1)}
    pool = events(api(viewer).get(f"/api/pools/{slot.pool_id}/timeline/", query))
    assert {"slot.heartbeat_lost", "session.requested"} <= set(pool)
    assert "session.requested" in events(api(viewer).get(f"/api/lablet-sessions/{session.pk}/timeline/"))


@pytest.mark.parametrize("query", [
    {"since": "2026-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"},
    {"until": "0001-01-01T00:00:00Z"},
    {"kind": "weather"},
    {"object_id": "1"},
])  # fmt: skip
def test_a_time_that_is_too_long_or_an_unknown_filter_is_rejected(api, viewer, slot, query):
    assert api(viewer).get(f"/api/slots/{slot.pk}/timeline/", query).status_code == 400
