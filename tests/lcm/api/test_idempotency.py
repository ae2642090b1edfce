"""A POST with an Idempotency-Key is executed once."""

from datetime import timedelta

import pytest
from django.apps import apps

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ApiToken, IdempotentResponse, LabletSession, SessionTransition
from tests.support.factories import make_person_token

SESSIONS = "/api/lablet-sessions/"


@pytest.fixture
def request_body(active_definition, project, operator, now):
    """Request a session for the operator, as any caller."""
    return {
        "definition": str(active_definition.pk),
        "project": str(project.pk),
        "owner": str(operator.pk),
        "ends_at": (now + timedelta(hours=2)).isoformat(),
    }


def post(client, path, body, key="key-1"):
    return client.post(path, body, HTTP_IDEMPOTENCY_KEY=key)


def test_the_same_request_twice_creates_one_session_and_the_same_response(api, operator, request_body):
    client = api(operator)
    first, second = post(client, SESSIONS, request_body), post(client, SESSIONS, request_body)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert LabletSession.objects.count() == 1


def test_only_a_replay_is_marked_as_replayed(api, operator, request_body):
    client = api(operator)
    assert "Idempotency-Replayed" not in post(client, SESSIONS, request_body)
    assert post(client, SESSIONS, request_body)["Idempotency-Replayed"] == "true"


def test_a_replay_returns_the_original_response_not_the_current_state(api, operator, request_body):
    client = api(operator)
    post(client, SESSIONS, request_body)
    LabletSession.objects.update(status=SessionStatus.EXPIRED)
    assert post(client, SESSIONS, request_body).json()["status"] == "PENDING"


def test_the_order_of_the_fields_does_not_matter(api, operator, request_body):
    client = api(operator)
    post(client, SESSIONS, request_body)
    assert post(client, SESSIONS, dict(reversed(request_body.items()))).status_code == 201
    assert LabletSession.objects.count() == 1


def test_without_a_key_the_same_request_creates_two_sessions(api, operator, request_body):
    client = api(operator)
    for _ in range(2):
        assert client.post(SESSIONS, request_body).status_code == 201
    assert LabletSession.objects.count() == 2
    assert not IdempotentResponse.objects.exists()


def test_another_key_creates_another_session(api, operator, request_body):
    client = api(operator)
    post(client, SESSIONS, request_body, "key-1")
    post(client, SESSIONS, request_body, "key-2")
    assert LabletSession.objects.count() == 2


@pytest.mark.parametrize("change", [{"priority": 90}, {"pool": "cml-us"}, {"unknown": 1}])
def test_the_same_key_with_another_body_is_rejected(change, api, operator, request_body):
    client = api(operator)
    post(client, SESSIONS, request_body)
    response = post(client, SESSIONS, request_body | change)
    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")
    assert LabletSession.objects.count() == 1


def test_the_same_key_for_another_url_is_rejected(api, operator, session_in):
    client = api(operator)
    one, two = session_in(SessionStatus.PENDING), session_in(SessionStatus.PENDING)
    assert post(client, f"{SESSIONS}{one.pk}/cancel/", {"reason": "x"}).status_code == 200
    assert post(client, f"{SESSIONS}{two.pk}/cancel/", {"reason": "x"}).status_code == 422
    two.refresh_from_db()
    assert two.status == SessionStatus.PENDING


def test_another_caller_with_the_same_key_is_independent(api, operator, admin, request_body):
    first, second = post(api(operator), SESSIONS, request_body), post(api(admin), SESSIONS, request_body)
    assert first.json()["id"] != second.json()["id"]
    assert "Idempotency-Replayed" not in second
    assert post(api(admin), SESSIONS, request_body | {"priority": 90}).status_code == 422


def test_login_and_token_of_a_person_share_keys(api, operator, request_body):
    first = post(api(operator), SESSIONS, request_body)
    second = post(api(make_person_token(operator)), SESSIONS, request_body)
    assert first.json() == second.json()


def test_a_repeated_cancel_is_not_a_conflict(api, operator, session):
    client, path = api(operator), f"{SESSIONS}{session.pk}/cancel/"
    statuses = [post(client, path, {"reason": "late"}).status_code for _ in range(2)]
    assert statuses == [200, 200]
    assert session.transitions.count() == 2


def test_a_controller_s_repeated_transition_is_not_a_conflict(api, controller, session_in):
    session = session_in(SessionStatus.RUNNING)
    path = f"/api/internal/lablet-sessions/{session.pk}/transitions/"
    statuses = [post(api(controller), path, {"to_status": "COLLECTING"}).status_code for _ in range(2)]
    assert statuses == [200, 200]
    assert SessionTransition.objects.filter(to_status="COLLECTING").count() == 1


def test_an_error_is_not_stored_and_the_same_request_may_succeed_later(
    api, operator, request_body, active_definition
):
    client = api(operator)
    type(active_definition).objects.update(status="draft")
    assert post(client, SESSIONS, request_body).status_code == 400
    assert not IdempotentResponse.objects.exists()
    type(active_definition).objects.update(status="active")
    assert post(client, SESSIONS, request_body).status_code == 201


def test_a_forbidden_request_stores_nothing(api, viewer, request_body):
    assert post(api(viewer), SESSIONS, request_body).status_code == 403
    assert not IdempotentResponse.objects.exists()


def test_a_response_without_a_body_is_replayed_too(api, admin, project, stranger):
    path = f"/api/projects/{project.pk}/members/"
    responses = [post(api(admin), path, {"user": str(stranger.pk)}) for _ in range(2)]
    assert [response.status_code for response in responses] == [204, 204]
    assert responses[1]["Idempotency-Replayed"] == "true"


def test_a_too_long_key_is_rejected_and_nothing_is_executed(api, operator, request_body):
    response = post(api(operator), SESSIONS, request_body, "k" * 201)
    assert (response.status_code, list(response.json()["details"])) == (400, ["Idempotency-Key"])
    assert not LabletSession.objects.exists()
    assert post(api(operator), SESSIONS, request_body, "k" * 200).status_code == 201


def test_a_get_ignores_a_key(api, viewer):
    client = api(viewer)
    for path in (SESSIONS, "/api/domains/"):
        assert client.get(path, HTTP_IDEMPOTENCY_KEY="key-1").status_code == 200
    assert not IdempotentResponse.objects.exists()


def test_the_key_of_a_new_token_is_not_stored_for_a_replay(api, admin):
    request_body = {"name": "worker-1", "kind": "controller", "scopes": ["pool:cml-eu"]}
    client = api(admin)
    first, second = post(client, "/api/tokens/", request_body), post(client, "/api/tokens/", request_body)
    key = first.json()["key"]
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json() | {"key": None}
    assert ApiToken.objects.count() == 1
    stored = "".join(str(list(model._base_manager.values())) for model in apps.get_models())
    assert "worker-1" in stored
    assert key not in stored


def test_a_repeated_revocation_has_the_same_response(api, admin, controller):
    path = f"/api/tokens/{controller.token.pk}/revoke/"
    first, second = (post(api(admin), path, {"reason": "lost"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json() == first.json()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("again", range(3))
def test_two_concurrent_requests_with_the_same_key_create_one_session(
    again, api, operator, request_body, at_once
):
    clients = [api(operator), api(operator)]
    requests = [lambda client=client: post(client, SESSIONS, request_body) for client in clients]
    first, second = at_once(*requests)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert LabletSession.objects.count() == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_bodies_with_the_same_key_one_is_rejected(api, operator, request_body, at_once):
    bodies = [request_body, request_body | {"priority": 90}]
    clients = [api(operator), api(operator)]
    requests = [
        lambda client=client, body=body: post(client, SESSIONS, body)
        for client, body in zip(clients, bodies, strict=True)
    ]
    assert sorted(response.status_code for response in at_once(*requests)) == [201, 422]
    assert LabletSession.objects.count() == 1
