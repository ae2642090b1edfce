"""Authentication: a person by session or token, a controller by token, or anonymous."""

from datetime import timedelta

import pytest
from django.test import Client

from lcm.domain.actors import SYSTEM
from lcm.models import ApiToken, ChangeLog
from lcm.services.tokens import revoke_token
from tests.support.factories import PASSWORD, TokenHolder, make_person_token

SESSIONS = "/api/lablet-sessions/"


@pytest.fixture
def logged_in(client, viewer):
    """A browser that logged in with a password."""
    assert client.login(username="vera", password=PASSWORD)
    return client


def bearer(text):
    return {"HTTP_AUTHORIZATION": text}


def test_a_login_is_enough_to_read(logged_in):
    assert logged_in.get(SESSIONS).status_code == 200


@pytest.fixture
def browser(operator):
    """The operator's browser, with CSRF checks."""
    csrf_client = Client(enforce_csrf_checks=True)
    csrf_client.force_login(operator)
    return csrf_client


def cancel(client, session, **headers):
    path = f"{SESSIONS}{session.pk}/cancel/"
    return client.post(path, '{"reason": "done"}', content_type="application/json", **headers)


def test_a_change_by_login_needs_the_csrf_token(browser, session):
    response = cancel(browser, session)
    assert response.status_code == 403
    assert response.json()["code"] == "permission_denied"
    assert "CSRF" in response.json()["message"]
    session.refresh_from_db()
    assert session.status == "PENDING"


def test_a_change_by_login_with_the_csrf_token_works(browser, session):
    browser.cookies["lcm_csrf"] = "a" * 32
    assert cancel(browser, session, HTTP_X_CSRFTOKEN="a" * 32).status_code == 200


def test_a_change_by_token_needs_no_csrf_token(operator, session):
    holder = make_person_token(operator)
    response = cancel(Client(enforce_csrf_checks=True), session, **bearer(f"Bearer {holder.key}"))
    assert response.status_code == 200


def test_a_person_s_token_has_the_person_s_role(api, viewer, operator, session):
    for person, status in ((viewer, 403), (operator, 200)):
        response = api(make_person_token(person)).post(f"{SESSIONS}{session.pk}/cancel/", {"reason": "done"})
        assert response.status_code == status


def test_the_change_log_names_the_person_and_the_token(api, operator, session):
    holder = make_person_token(operator)
    api(holder).post(f"{SESSIONS}{session.pk}/cancel/", {"reason": "done"})
    entry = ChangeLog.objects.get(reason="done")
    assert (entry.actor, entry.user_id, entry.token_id) == ("otto", operator.pk, holder.token.pk)


def test_a_controller_s_token_is_accepted(api, controller):
    assert api(controller).get("/api/internal/lablet-sessions/").status_code == 200


@pytest.mark.parametrize("word", ["Bearer", "bearer", "BEARER"])
def test_the_bearer_keyword_is_case_insensitive(word, client, controller):
    assert client.get(SESSIONS, **bearer(f"{word} {controller.key}")).status_code == 200


def test_an_expired_token_is_rejected(api, viewer, now):
    holder = make_person_token(viewer)
    ApiToken.objects.update(expires_at=now - timedelta(seconds=1))
    response = api(holder).get(SESSIONS)
    assert response.status_code == 401
    assert response.json()["message"] == "This token is unknown, expired or revoked."


def test_a_revoked_token_is_rejected(api, controller, now):
    revoke_token(token=controller.token, reason="lost", actor=SYSTEM, now=now)
    assert api(controller).get(SESSIONS).status_code == 401


def test_the_token_of_a_closed_account_is_rejected(api, viewer):
    holder = make_person_token(viewer)
    viewer.is_active = False
    viewer.save()
    assert api(holder).get(SESSIONS).status_code == 401


def test_a_person_without_a_role_is_authenticated_but_has_no_permissions(api, stranger):
    assert api(stranger).get(SESSIONS).status_code == 403


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer lcm_wrong",
        "Bearer lcm_a lcm_b",
        "Bearer ÿþ",
        "Bearer " + "x" * 5000,
        "Bearer lcm_\x7f",
        "Basic dmVyYTpwYXNz",
        "Token lcm_wrong",
        "lcm_wrong",
        ",",
        "",
    ],
)
def test_a_malformed_header_returns_401(header, client, controller):
    response = client.get(SESSIONS, **bearer(header))
    assert response.status_code == 401
    assert response.json()["code"] in ("not_authenticated", "authentication_failed")
    assert response["WWW-Authenticate"] == 'Bearer realm="lcm"'


def test_a_wrong_token_with_a_valid_login_is_rejected(logged_in):
    assert logged_in.get(SESSIONS, **bearer("Bearer lcm_wrong")).status_code == 401


def test_a_key_in_the_url_is_ignored(client, controller):
    assert client.get(SESSIONS, {"token": controller.key}).status_code == 401


@pytest.mark.usefixtures("one_window")
def test_guessing_tokens_is_rate_limited(client, controller, settings):
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "3/min"
    for _ in range(3):
        assert client.get(SESSIONS, **bearer("Bearer lcm_wrong")).status_code == 401
    response = client.get(SESSIONS, **bearer("Bearer lcm_wrong"))
    assert response.status_code == 429
    assert int(response["Retry-After"]) >= 1


@pytest.mark.usefixtures("one_window")
def test_guessing_from_one_address_does_not_block_another(client, controller, settings):
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "1/min"
    client.get(SESSIONS, **bearer("Bearer lcm_wrong"))
    wrong = bearer("Bearer lcm_also_wrong")
    assert client.get(SESSIONS, **wrong).status_code == 429
    assert client.get(SESSIONS, **wrong, REMOTE_ADDR="10.0.0.2").status_code == 401


def test_guessing_does_not_block_valid_tokens(client, controller, settings):
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "1/min"
    for _ in range(3):
        client.get(SESSIONS, **bearer("Bearer lcm_wrong"))
    assert client.get(SESSIONS, **bearer(f"Bearer {controller.key}")).status_code == 200


def test_valid_tokens_are_not_counted_as_guesses(client, controller, settings):
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "1/min"
    for _ in range(3):
        assert client.get(SESSIONS, **bearer(f"Bearer {controller.key}")).status_code == 200


def test_responses_never_contain_the_key(api, admin):
    holder = make_person_token(admin, "mine")
    listed = api(holder).get("/api/tokens/").content.decode()
    assert "mine" in listed
    assert holder.key not in listed
    assert holder.token.hash not in listed


def test_last_use_is_recorded(api, viewer):
    holder: TokenHolder = make_person_token(viewer)
    assert holder.token.last_used_at is None
    api(holder).get(SESSIONS)
    holder.token.refresh_from_db()
    assert holder.token.last_used_at is not None
