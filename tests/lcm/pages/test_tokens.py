"""Token pages: purpose of a token, and who is affected when it expires."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from lcm.models import ApiToken
from tests.support.factories import ensure_pools, make_controller, make_person_token


@pytest.fixture
def client_of_admin(client, admin):
    client.force_login(admin)
    ensure_pools()
    return client


@pytest.fixture
def create(client_of_admin, now):
    """`create(field=value)`: the response of the page for a new token."""

    def post(**fields):
        expires = f"{now + timedelta(days=30):%Y-%m-%dT%H:%M}"
        return client_of_admin.post(reverse("token_create"), {"name": "new", "expires_at": expires, **fields})

    return post


def test_scopes_are_shown_as_text(client_of_admin):
    both = make_controller("both", "pool:cml-eu", "prometheus:targets").token
    assert both.scope_labels == ["cml-eu", "Prometheus targets"]
    page = client_of_admin.get(reverse("token_list")).content.decode()
    assert '<span class="tag">cml-eu</span> <span class="tag">Prometheus targets</span>' in page
    assert "pool:" not in page


def test_a_controllers_token_is_created_for_existing_pools(client_of_admin, create):
    page = client_of_admin.get(reverse("token_create")).content.decode()
    assert '<input type="checkbox" name="scopes" value="pool:cml-eu">cml-eu' in page
    assert 'name="user"' not in page
    assert "optional" not in page
    text = create(kind="controller", scopes=["pool:cml-eu", "pool:cml-us"]).content.decode()
    assert "<dd>cml-eu, cml-us</dd>" in text
    assert ApiToken.objects.get().scopes == ["pool:cml-eu", "pool:cml-us"]


def test_a_persons_token_is_created_for_the_person(client_of_admin, create, viewer):
    page = client_of_admin.get(reverse("token_create"), {"kind": "person"}).content.decode()
    assert 'name="scopes"' not in page
    assert "optional" not in page
    assert create(kind="person", user="vera").status_code == 200
    assert ApiToken.objects.get().user == viewer


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"kind": "controller"}, "Choose at least one pool, or Prometheus targets."),
        ({"kind": "controller", "scopes": "pool:atlantis"}, "pool:atlantis is not one of the available"),
        ({"kind": "person"}, "This field is required."),
        ({"kind": "person", "user": "unknown"}, "There is no “unknown”."),
    ],
)
def test_a_missing_value_is_reported_at_its_field(create, fields, error):
    response = create(**fields)
    assert response.status_code == 422
    page = response.content.decode()
    assert error in page
    assert "notice tone-bad" not in page
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("name", ["token_rotate", "token_revoke"])
def test_the_revoke_page_shows_who_is_affected(client_of_admin, viewer, now, name):
    used, unused = make_controller("c", "pool:cml-eu", "pool:cml-us").token, make_person_token(viewer).token
    ApiToken.objects.filter(pk=used.pk).update(last_used_at=now - timedelta(hours=3))
    page = client_of_admin.get(reverse(name, args=[used.pk])).content.decode()
    assert "The token is for cml-eu and cml-us and was last used 3 h ago." in page
    assert ("shown once, on the next page, and is valid for 30 days." in page) == (name == "token_rotate")
    page = client_of_admin.get(reverse(name, args=[unused.pk])).content.decode()
    assert "The token is for vera and has never been used." in page


def test_the_list_counts_valid_and_soon_expiring_tokens(client_of_admin, now):
    def lead():
        return client_of_admin.get(reverse("token_list")).content.decode()

    assert "<strong>No valid tokens.</strong>" in lead()
    keys = [make_controller(name, "pool:cml-eu").token.pk for name in ("one", "two", "three")]
    ApiToken.objects.filter(pk=keys[0]).update(revoked_at=now)
    ApiToken.objects.update(expires_at=now + timedelta(days=31))
    assert "<strong>2 valid tokens · 0 expiring within 30 days.</strong>" in lead()
    ApiToken.objects.filter(pk=keys[1]).update(expires_at=now + timedelta(days=29))
    assert "<strong>2 valid tokens · 1 expiring within 30 days.</strong>" in lead()
