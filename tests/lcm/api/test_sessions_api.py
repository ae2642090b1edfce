"""API of sessions: requesting, reading, cancelling, extending, and a controller's transitions."""

from datetime import timedelta

import pytest

from lcm.domain.lifecycle import TRANSITIONS, SessionStatus
from lcm.models import LabletSession, SessionTransition
from tests.support.factories import make_project

S = SessionStatus
SESSIONS = "/api/lablet-sessions/"
INTERNAL = "/api/internal/lablet-sessions/"


@pytest.fixture
def request_body(active_definition, project, now):
    return {
        "definition": str(active_definition.pk),
        "project": str(project.pk),
        "ends_at": (now + timedelta(hours=2)).isoformat(),
    }


def test_a_session_defaults_to_the_caller_and_to_now(api, operator, request_body, now):
    response = api(operator).post(SESSIONS, request_body)
    assert response.status_code == 201
    body = response.json()
    assert (body["owner_name"], body["status"], body["priority"]) == ("otto", "PENDING", 50)
    assert (body["definition_name"], body["domain_name"], body["project_name"]) == (
        "campus",
        "academy",
        "ccna",
    )
    assert (body["revision"], body["attempt"], body["pool"]) == (1, 1, "cml-eu")
    session = LabletSession.objects.get(pk=body["id"])
    assert abs(session.starts_at - now) < timedelta(minutes=1)


def test_the_response_has_kernels_requirements_and_history(api, operator, request_body):
    body = api(operator).post(SESSIONS, request_body).json()
    assert body["requirements"]["cpu_cores"] == "4.00"
    assert {kernel["node_label"]: kernel["cpu_cores"] for kernel in body["kernels"]} == {
        "host": "1.00",
        "r1": "2.00",
        "r2": "1.00",
    }
    assert [(step["from_status"], step["to_status"], step["actor"]) for step in body["transitions"]] == [
        ("", "PENDING", "otto")
    ]


def test_a_session_is_requested_for_another_person_with_a_later_start_and_a_priority(
    api, operator, viewer, request_body, now
):
    later = now + timedelta(days=1)
    timeslot = {"starts_at": later.isoformat(), "ends_at": (later + timedelta(hours=1)).isoformat()}
    body = (
        api(operator)
        .post(SESSIONS, request_body | timeslot | {"owner": str(viewer.pk), "priority": 90})
        .json()
    )
    assert (body["owner_name"], body["priority"]) == ("vera", 90)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"definition": "nonsense"}, "definition"),
        ({"definition": "00000000-0000-0000-0000-000000000000"}, "definition"),
        ({"project": None}, "project"),
        ({"owner": "vera"}, "owner"),
        ({"ends_at": "soon"}, "ends_at"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
        ({"ends_at": "9999-12-31T00:00:00Z"}, "ends_at"),
        ({"starts_at": "2020-01-01T00:00:00Z"}, "starts_at"),
        ({"priority": 51}, "priority"),
        ({"pool": "p" * 64}, "pool"),
        ({"pool": "a\x00b"}, "pool"),
    ],
)
def test_an_invalid_request_is_rejected(change, field, api, operator, request_body):
    response = api(operator).post(SESSIONS, request_body | change)
    assert (response.status_code, list(response.json()["details"])) == (400, [field])
    assert not LabletSession.objects.exists()


def test_the_owner_must_be_a_member(api, operator, request_body):
    response = api(operator).post(
        SESSIONS, request_body | {"project": str(make_project("academy", "ccnp").pk)}
    )
    assert response.json()["details"] == {"owner": ["otto is not a member of academy / ccnp."]}


@pytest.mark.parametrize(
    ("role", "status"), [("viewer", 403), ("stranger", 403), ("operator", 201), ("admin", 400)]
)
def test_requesting_requires_an_operator(role, status, api, request_body, request):
    assert api(request.getfixturevalue(role)).post(SESSIONS, request_body).status_code == status


def test_a_viewer_can_read(api, viewer, session):
    client = api(viewer)
    assert [row["id"] for row in client.get(SESSIONS).json()["results"]] == [str(session.pk)]
    assert client.get(f"{SESSIONS}{session.pk}/").json()["id"] == str(session.pk)


def test_a_session_is_cancelled_with_a_reason(api, operator, session):
    response = api(operator).post(f"{SESSIONS}{session.pk}/cancel/", {"reason": "course moved"})
    assert (response.status_code, response.json()["status"]) == (200, "CANCELLED")
    assert response.json()["transitions"][-1]["reason"] == "course moved"
    assert {kernel["status"] for kernel in response.json()["kernels"]} == {"TERMINATED"}


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "  "}, {"reason": "x" * 501}])
def test_cancelling_requires_a_reason(body, api, operator, session):
    response = api(operator).post(f"{SESSIONS}{session.pk}/cancel/", body)
    assert (response.status_code, list(response.json()["details"])) == (400, ["reason"])


def test_a_session_is_cancelled_once(api, operator, session):
    path = f"{SESSIONS}{session.pk}/cancel/"
    statuses = [api(operator).post(path, {"reason": "late"}).status_code for _ in range(2)]
    assert statuses == [200, 409]


def test_a_session_is_extended(api, operator, session, now):
    later = now + timedelta(hours=5)
    response = api(operator).post(f"{SESSIONS}{session.pk}/extend/", {"ends_at": later.isoformat()})
    assert response.status_code == 200
    session.refresh_from_db()
    assert session.ends_at == later


@pytest.mark.parametrize(("hours", "status"), [(1, 400), (9, 400), (3, 200)])
def test_an_extension_is_checked_against_its_limits(hours, status, api, operator, session, now):
    later = (now + timedelta(hours=hours)).isoformat()
    assert api(operator).post(f"{SESSIONS}{session.pk}/extend/", {"ends_at": later}).status_code == status


def test_an_ended_session_is_not_extended(api, operator, session_in, now):
    session = session_in(S.TERMINATED)
    later = (now + timedelta(hours=3)).isoformat()
    assert api(operator).post(f"{SESSIONS}{session.pk}/extend/", {"ends_at": later}).status_code == 409


@pytest.mark.parametrize("step", ["cancel", "extend"])
@pytest.mark.parametrize("role", ["viewer", "stranger"])
def test_changes_require_an_operator(step, role, api, session, request):
    client = api(request.getfixturevalue(role))
    assert client.post(f"{SESSIONS}{session.pk}/{step}/", {"reason": "x"}).status_code == 403


@pytest.mark.parametrize("zone", ["Asia/Tokyo", ""])
def test_times_are_in_utc_for_any_time_zone_setting(zone, api, viewer, session, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    viewer.time_zone = zone
    viewer.save()
    body = api(viewer).get(f"{SESSIONS}{session.pk}/").json()
    assert body["starts_at"].endswith("Z")
    assert body["transitions"][0]["at"].endswith("Z")


def step(client, session, to, **more):
    return client.post(f"{INTERNAL}{session.pk}/transitions/", {"to_status": to, **more})


def test_a_controller_takes_a_session_through_its_lifecycle(api, controller, session):
    client = api(controller)
    for status in ("SCHEDULED", "INSTANTIATING", "READY", "RUNNING", "COLLECTING", "STOPPING", "TERMINATED"):
        response = step(client, session, status)
        assert (response.status_code, response.json()["status"]) == (200, status)
    assert session.transitions.count() == 8


@pytest.mark.parametrize("status", S)
def test_a_transition_outside_the_table_is_a_conflict_that_lists_allowed_ones(
    status, api, controller, session_in
):
    session = session_in(status)
    steps = SessionTransition.objects.count()
    rejected_statuses = [to for to in S if to not in TRANSITIONS[status]]
    for to in rejected_statuses:
        response = step(api(controller), session, to)
        assert response.status_code == 409
        assert response.json()["details"] == {"status": status, "allowed": list(TRANSITIONS[status])}
    assert SessionTransition.objects.count() == steps


def test_a_transition_from_an_outdated_status_is_a_conflict(api, controller, session_in):
    session = session_in(S.COLLECTING)
    response = step(api(controller), session, "STOPPING", from_status="RUNNING")
    assert response.status_code == 409
    assert response.json()["details"] == {"status": "COLLECTING", "allowed": ["STOPPING"]}
    session.refresh_from_db()
    assert session.status == S.COLLECTING


def test_a_transition_based_on_an_extended_end_is_a_conflict(api, controller, session_in):
    session = session_in(S.RUNNING)
    end, client = session.ends_at, api(controller)
    LabletSession.objects.filter(pk=session.pk).update(ends_at=end + timedelta(minutes=5))
    response = step(client, session, "COLLECTING", ends_at=end.isoformat())
    new_end = (end + timedelta(minutes=5)).isoformat()
    assert (response.status_code, response.json()["details"]["ends_at"]) == (409, new_end)
    assert f"Its timeslot now ends at {new_end}" in response.json()["message"]
    shown = client.get(f"/api/internal/lablet-sessions/{session.pk}").json()
    assert shown["status"] == "RUNNING"
    assert step(client, session, "COLLECTING", ends_at=shown["ends_at"]).status_code == 200


def test_a_repeated_transition_has_the_end_to_the_microsecond(api, controller, session_in):
    session = session_in(S.RUNNING)
    LabletSession.objects.filter(pk=session.pk).update(ends_at=session.ends_at.replace(microsecond=123456))
    address = f"{INTERNAL}{session.pk}/transitions/"
    client = api(controller)
    first, second = (
        client.post(address, {"to_status": "STOPPING"}, HTTP_IDEMPOTENCY_KEY="one") for _ in range(2)
    )
    assert second["Idempotency-Replayed"] == "true"
    assert second.json() == first.json()


def test_a_conflict_does_not_list_the_rejected_transition_as_allowed(api, controller, session_in):
    response = step(api(controller), session_in(S.COLLECTING), "STOPPING", from_status="RUNNING")
    assert "Allowed: stopping" not in response.json()["message"]


def test_a_conflict_reports_the_actual_status_not_the_expected_one(api, controller, session_in):
    response = step(api(controller), session_in(S.READY), "RUNNING", from_status="PENDING")
    assert response.status_code == 409
    assert response.json()["details"] == {"status": "READY", "allowed": ["RUNNING", "STOPPING"]}


def test_a_transition_from_the_current_status_succeeds(api, controller, session_in):
    session = session_in(S.RUNNING)
    assert step(api(controller), session, "STOPPING", from_status="RUNNING").status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "to_status"),
        ({"to_status": "LOST"}, "to_status"),
        ({"to_status": "running"}, "to_status"),
        ({"to_status": "READY", "from_status": "LOST"}, "from_status"),
        ({"to_status": "SCHEDULED", "reason": "x" * 501}, "reason"),
    ],
)
def test_an_invalid_transition_is_rejected(body, field, api, controller, session):
    response = api(controller).post(f"{INTERNAL}{session.pk}/transitions/", body)
    assert (response.status_code, list(response.json()["details"])) == (400, [field])
