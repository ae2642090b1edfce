"""Error pages: what happened, what to do next, and the request id."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from lcm.domain.actors import SYSTEM, Actor
from lcm.services.organisation import create_domain, delete_domain


@pytest.fixture
def viewer_client(client, viewer):
    client.force_login(viewer)
    return client


def text_of(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", response.content.decode()))


@pytest.fixture
def deleted_domain(admin):
    domain = create_domain(name="short-lived", actor=SYSTEM)
    key = domain.pk
    delete_domain(domain=domain, reason="merged into academy", actor=Actor.person(admin))
    return reverse("domain_detail", args=[key])


def test_the_404_of_a_deleted_object_shows_its_last_change(viewer_client, deleted_domain, admin):
    response = viewer_client.get(deleted_domain)
    assert response.status_code == 404
    text = text_of(response)
    for part in ("Domain short-lived deleted", admin.username, "merged into academy", "Go to Domains"):
        assert part in text
    assert response["X-Request-ID"] in text


def test_people_who_cannot_read_the_change_log_do_not_see_the_last_change(client, stranger, deleted_domain):
    for who in (None, stranger):
        if who:
            client.force_login(who)
        assert "merged into academy" not in text_of(client.get(deleted_domain + "no-such-part"))


def test_an_object_that_exists_is_not_called_deleted(viewer_client, session):
    response = viewer_client.get(reverse("domain_detail", args=[session.pk]))
    assert response.status_code == 404
    assert "Last change" not in text_of(response)


def test_an_unknown_address_names_the_list_it_belongs_to(viewer_client):
    text = text_of(viewer_client.get(reverse("project_detail", args=[uuid4()])))
    assert "The address may be wrong" in text
    assert "Go to Projects" in text


def test_a_refused_page_says_which_role_the_person_has_and_who_assigns_roles(viewer_client, admin):
    response = viewer_client.get(reverse("token_list"))
    assert response.status_code == 403
    text = text_of(response)
    assert "You have the role Viewer. Admins can assign another one: " + admin.display_name in text
    assert "Go to Tokens" not in text
    assert "@" not in text


def test_a_person_without_a_role_is_not_told_the_names_of_admins(client, stranger, admin):
    client.force_login(stranger)
    text = text_of(client.get(reverse("home")))
    assert "An Admin assigns roles." in text
    assert not re.search(rf"\b{admin.username}\b", text)


def test_an_expired_form_leads_back_to_its_page(viewer):
    client = Client(enforce_csrf_checks=True)
    client.force_login(viewer)
    form, other = reverse("password_change"), reverse("profile")
    headers = {"referer": f"http://testserver{other}"}
    response = client.post(form, headers=headers)
    assert response.status_code == 403
    assert "The form has expired" in text_of(response)
    assert f'href="http://testserver{other}"' in response.content.decode()
    elsewhere = client.post(form, headers={"referer": "https://elsewhere.example/"}).content.decode()
    assert "elsewhere.example" not in elsewhere


def test_a_method_that_a_page_does_not_accept_is_explained(viewer_client):
    response = viewer_client.get(reverse("fair_share_weights"))
    assert (response.status_code, response["Allow"]) == (405, "POST")
    text = text_of(response)
    assert "This address does not accept GET requests." in text
    assert response["X-Request-ID"] in text
