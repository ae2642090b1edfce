"""API of live statistics."""

from uuid import uuid4

import pytest

from lcm.domain.lifecycle import SessionStatus
from observations.api import live_serializers
from tests.observations.pages.test_live_pages import GB, responses_for
from tests.support.fake_prometheus import FakeResponse, always, healthy_response


@pytest.fixture
def running(session_in):
    return session_in(SessionStatus.RUNNING)


def test_live_stats_of_a_session_list_its_kernels(api, viewer, running, prometheus):
    prometheus.respond = responses_for(running)
    found = api(viewer).get(f"/api/lablet-sessions/{running.pk}/live-stats").json()
    assert (found["state"], found["missing"], found["dropped"]) == ("ok", [], 0)
    assert set(found["nodes"].values()) == {"r1", "r2", "host"}
    assert set(found["kernels"]) == set(found["nodes"])
    memory = next(iter(found["kernels"].values()))["metrics"]["mem"]
    assert (memory["current"], memory["capacity"], memory["pct"], memory["unit"]) == (GB, 2 * GB, 50, "bytes")
    assert found["totals"]["mem"]["current"] == 3 * GB


def test_live_stats_without_prometheus_are_not_configured(api, viewer, running):
    found = api(viewer).get(f"/api/lablet-sessions/{running.pk}/live-stats").json()
    assert found["state"] == "not configured"
    assert {kernel["state"] for kernel in found["kernels"].values()} == {"not configured"}


def test_a_batch_has_every_requested_id(api, viewer, running, session, prometheus):
    prometheus.respond = responses_for(running)
    unknown_kernel, unknown_session = str(uuid4()), str(uuid4())
    body = {"kernels": [unknown_kernel], "sessions": [str(running.pk), unknown_session]}
    response = api(viewer).post("/api/live-stats", body)
    assert response.status_code == 200, response.json()
    found = response.json()
    assert found["sessions"][unknown_session] == []
    assert len(found["sessions"][str(running.pk)]) == 3
    assert set(found["kernels"]) == {unknown_kernel, *found["sessions"][str(running.pk)]}
    assert found["kernels"][unknown_kernel] == {"state": "absent", "observed_at": None, "metrics": {}}


def test_a_batch_has_a_limit(api, viewer, running, prometheus, monkeypatch):
    many = [str(uuid4()) for _ in range(5_001)]
    assert api(viewer).post("/api/live-stats", {"kernels": many}).status_code == 400
    monkeypatch.setattr(live_serializers, "MOST_KERNELS", 2)
    response = api(viewer).post("/api/live-stats", {"sessions": [str(running.pk)]})
    assert response.status_code == 400
    assert "3 kernels requested; the maximum is 2." in response.json()["message"]
    assert prometheus.queries == []


@pytest.mark.parametrize(
    ("body", "details"),
    [
        ({"kernels": []}, {"kernels": ["This list may not be empty."]}),
        ({"sessions": []}, {"sessions": ["This list may not be empty."]}),
        ({}, {"__all__": ["Send the ID of at least one kernel or session."]}),
    ],
)
def test_an_empty_batch_is_rejected(body, details, api, viewer, prometheus):
    response = api(viewer).post("/api/live-stats", body)
    assert (response.status_code, response.json()["details"]) == (400, details)
    assert prometheus.queries == []


def test_history_covers_the_requested_range(api, viewer, running, prometheus):
    prometheus.respond = healthy_response
    address = f"/api/lablet-sessions/{running.pk}/live-stats/history"
    for name, step in (("1h", 30), ("24h", 375)):
        found = api(viewer).get(address, {"range": name}).json()
        assert (found["state"], found["step"]) == ("ok", step)
    assert api(viewer).get(address, {"range": "session"}).status_code == 200
    assert api(viewer).get(address, {"range": "always"}).status_code == 400


def test_a_failure_is_reported_with_its_reason(api, viewer, running, prometheus):
    prometheus.respond = always(FakeResponse(b"", 500))
    response = api(viewer).get(f"/api/lablet-sessions/{running.pk}/live-stats")
    assert response.status_code == 200
    assert response.json()["state"] == "failed"
    assert response.json()["problems"] == ["HTTP 500"]
