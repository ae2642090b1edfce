"""Every error has the format {code, message, details}."""

import pytest
from django.db import InterfaceError, OperationalError

from lcm.domain.lifecycle import SessionStatus

SESSIONS = "/api/lablet-sessions/"
SESSION = "django.contrib.sessions.backends.db.SessionStore.load"


def assert_error(response, status, code):
    assert response.status_code == status
    assert response["Content-Type"].startswith("application/json")
    body = response.json()
    assert set(body) == {"code", "message", "details"}
    assert body["code"] == code
    assert isinstance(body["message"], str)
    assert body["message"]
    assert isinstance(body["details"], dict)
    return body


def test_400_for_a_field(api, operator):
    body = assert_error(api(operator).post(SESSIONS, {}), 400, "invalid")
    assert set(body["details"]) == {"definition", "project", "ends_at"}
    assert body["message"] == "definition: This field is required."


def test_400_for_a_rule_of_a_service(api, operator, definition, project, now):
    request_body = {
        "definition": definition.pk,
        "project": project.pk,
        "ends_at": now.replace(year=now.year + 1),
    }
    body = assert_error(api(operator).post(SESSIONS, request_body), 400, "invalid")
    assert body["details"] == {
        "definition": ["branch-office v1.0 is draft; only active definitions can be requested."]
    }


@pytest.mark.parametrize("text", ["{", "", "nonsense", '{"reason": NaN}', "\x00"])
def test_400_for_a_body_that_is_not_json(text, api, operator, session):
    response = api(operator).generic(
        "POST", f"{SESSIONS}{session.pk}/cancel/", text, content_type="application/json"
    )
    assert_error(response, 400, "parse_error" if text else "invalid")


@pytest.mark.parametrize("text", ["[]", "null", "3", '"text"', "[{}]"])
def test_400_for_json_that_is_not_an_object(text, api, operator, session):
    response = api(operator).generic(
        "POST", f"{SESSIONS}{session.pk}/cancel/", text, content_type="application/json"
    )
    body = assert_error(response, 400, "invalid")
    assert list(body["details"]) == ["__all__"]


def test_400_for_a_filter(api, viewer):
    body = assert_error(api(viewer).get(SESSIONS, {"colour": "red"}), 400, "invalid")
    assert body["details"] == {"colour": ["Unknown filter."]}


@pytest.mark.parametrize(
    "path", ["/api/pools/{}/dry-run", "/api/pools/{}/", "/api/lablet-sessions/{}/cancel/"]
)
def test_404_for_36_characters_that_are_not_a_uuid(path, api, admin):
    for text in ("-" * 36, "a" * 36, "0-" * 18):
        assert_error(api(admin).post(path.format(text), {}), 404, "not_found")


def test_401_states_how_to_authenticate(api, db):
    response = api().get(SESSIONS)
    assert_error(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"] == 'Bearer realm="lcm"'


def test_403_for_a_role(api, viewer):
    body = assert_error(api(viewer).post(SESSIONS, {}), 403, "permission_denied")
    assert body["message"] == "Your role does not allow this."


@pytest.mark.parametrize(
    "path",
    [
        f"{SESSIONS}00000000-0000-0000-0000-000000000000/",
        f"{SESSIONS}nonsense/",
        "/api/nowhere",
        "/api/changes/99999999999999999999999999/",
    ],
)
def test_404_for_a_missing_object(path, api, viewer):
    assert_error(api(viewer).get(path), 404, "not_found")


def test_405_lists_allowed_methods(api, admin):
    response = api(admin).delete("/api/users/")
    assert_error(response, 405, "method_not_allowed")
    assert "GET" in response["Allow"]


def test_405_with_an_idempotency_key(api, admin):
    response = api(admin, raise_request_exception=False).post("/api/changes/", {}, HTTP_IDEMPOTENCY_KEY="k1")
    assert_error(response, 405, "method_not_allowed")


def test_409_lists_allowed_transitions(api, operator, session_in):
    session = session_in(SessionStatus.STOPPING)
    response = api(operator).post(f"{SESSIONS}{session.pk}/cancel/", {"reason": "late"})
    body = assert_error(response, 409, "state_conflict")
    assert body["details"] == {"status": "STOPPING", "allowed": ["TERMINATED", "FAILED"]}


def test_409_for_an_object_in_use(api, admin, session):
    response = api(admin).delete(f"/api/lablet-definitions/{session.definition.pk}/?reason=old")
    assert_error(response, 409, "in_use")


def test_415_for_a_form(api, operator):
    response = api(operator).generic(
        "POST", SESSIONS, "a=1", content_type="application/x-www-form-urlencoded"
    )
    assert_error(response, 415, "unsupported_media_type")


def test_422_for_a_key_used_for_something_else(api, operator, session_in):
    first, second = session_in(SessionStatus.PENDING), session_in(SessionStatus.PENDING)
    client = api(operator)
    client.post(f"{SESSIONS}{first.pk}/cancel/", {"reason": "x"}, HTTP_IDEMPOTENCY_KEY="k1")
    response = client.post(f"{SESSIONS}{second.pk}/cancel/", {"reason": "x"}, HTTP_IDEMPOTENCY_KEY="k1")
    assert_error(response, 422, "idempotency_key_reused")


@pytest.mark.usefixtures("one_window")
def test_429_states_when_to_retry(api, viewer, settings):
    settings.CONFIG["API_RATE"] = "1/min"
    client = api(viewer)
    assert client.get(SESSIONS).status_code == 200
    response = client.get(SESSIONS)
    assert_error(response, 429, "throttled")
    assert 1 <= int(response["Retry-After"]) <= 60


@pytest.mark.parametrize("debug", [False, True])
def test_500_contains_only_the_request_id(debug, api, viewer, monkeypatch, settings, caplog):
    """The demo runs with DEBUG and uses the same format; the traceback is in the log."""
    settings.DEBUG = debug

    def fail():
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr("lcm.selectors.sessions.sessions", fail)
    response = api(viewer, raise_request_exception=False).get(SESSIONS)
    body = assert_error(response, 500, "server_error")
    assert "secret" not in response.content.decode()
    assert body["details"] == {"id": response["X-Request-ID"]}
    assert "the secret of the house" in caplog.text


def test_a_body_larger_than_five_megabytes_is_rejected(api, admin):
    oversized = {"topology": "x" * (6 * 1024 * 1024), "name": "huge"}
    response = api(admin).post("/api/lablet-definitions/import/", oversized)
    assert_error(response, 413, "too_large")


@pytest.mark.parametrize("error", [OperationalError("database is locked"), InterfaceError("closed")])
@pytest.mark.parametrize("part", ["lcm.api.authentication.TokenAuthentication.authenticate", SESSION])
def test_an_unavailable_database_returns_503(part, error, api, viewer, monkeypatch):
    """Raised by the API, or by the session that a page loads before its view."""

    def fail(*args, **kwargs):
        raise error

    client = api(viewer, raise_request_exception=False)
    monkeypatch.setattr(part, fail)
    if part == SESSION:
        response = client.get("/sessions/")
        assert "The database does not respond." in response.content.decode()
    else:
        response = client.get("/api/users/")
        text = "The database does not respond. Try again in a few seconds."
        assert response.json() == {"code": "unavailable", "message": text, "details": {}}
    assert (response.status_code, response["Retry-After"]) == (503, "5")
