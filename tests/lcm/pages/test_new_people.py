"""Adding and importing people, and setting a password with a link."""

from __future__ import annotations

import csv
import re
from io import StringIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from lcm.domain.roles import Role
from lcm.models import User
from lcm.services.password_links import password_link
from tests.support.factories import make_person, make_project

SECRET = {"new": "a-long-new-secret", "again": "a-long-new-secret"}
LINK = re.compile(r"http://testserver(/set-password/[\w-]+/[\w-]+)")


@pytest.fixture
def admin_client(client, admin):
    client.force_login(admin)
    return client


@pytest.fixture
def visitor():
    return Client()


def form(**fields):
    return {"username": "nora", "email": "", "first_name": "", "last_name": "", "role": "1", **fields}


def opened(visitor, path):
    """Open a link; return the page that Django redirects to, without the token in its address."""
    response = visitor.get(path, follow=True)
    return response, response.redirect_chain[-1][0] if response.redirect_chain else path


def test_an_added_person_sets_a_password_and_signs_in(admin_client, visitor, project):
    response = admin_client.post(reverse("person_create"), form(projects=[str(project.pk)]))
    assert response["Cache-Control"] == "no-store"
    path = LINK.search(response.content.decode())[1]
    page, address = opened(visitor, path)
    assert "nora" in page.content.decode()
    assert path.split("/")[-1] not in address
    done = visitor.post(address, SECRET, follow=True)
    assert "Password set. Sign in with it." in done.content.decode()
    visitor.post(reverse("login"), {"username": "nora", "password": SECRET["new"]})
    assert visitor.get(reverse("home")).status_code == 200
    assert User.objects.get(username="nora").projects.get() == project
    again, _ = opened(Client(), path)
    assert again.status_code == 404


def test_an_invalid_person_keeps_what_was_entered(admin_client, viewer, project):
    fields = form(username="vera", email="nora@example.org", role="2", projects=[str(project.pk)])
    response = admin_client.post(reverse("person_create"), fields)
    assert response.status_code == 422
    page = response.content.decode()
    assert "There is already a person with the user name" in page
    assert 'value="nora@example.org"' in page
    assert re.search(rf'value="{project.pk}"[^>]* checked', page)


def test_a_password_link_for_an_existing_person_requires_a_reason(admin_client, viewer, visitor):
    path = reverse("person_password_link", args=[viewer.pk])
    assert admin_client.post(path, {"reason": ""}).status_code == 422
    link = LINK.search(admin_client.post(path, {"reason": "forgot it"}).content.decode())[1]
    _, address = opened(visitor, link)
    visitor.post(address, SECRET)
    viewer.refresh_from_db()
    assert viewer.check_password(SECRET["new"])


def test_the_form_is_refused_for_superusers(admin_client):
    root = make_person("root", is_superuser=True)
    path = reverse("person_password_link", args=[root.pk])
    assert "Only superusers" in admin_client.get(path).content.decode()
    response = admin_client.post(path, {"reason": "take over"})
    assert response.status_code == 422
    assert not LINK.search(response.content.decode())


def test_all_invalid_links_get_the_same_page(visitor, viewer, settings, monkeypatch):
    now = timezone.now()
    closed = make_person("gone", is_active=False)
    link, to_closed = password_link(viewer, now=now), password_link(closed, now=now)
    paths = {
        "wrong token": reverse("set_password", args=[link.uid, "abc-def"]),
        "wrong id": reverse("set_password", args=["MQ", link.token]),
        "token of another person": reverse("set_password", args=[to_closed.uid, link.token]),
        "closed account": reverse("set_password", args=[to_closed.uid, to_closed.token]),
        "no form was opened": reverse("set_password", args=[link.uid, "set-password"]),
    }
    pages = {name: visitor.get(path) for name, path in paths.items()}
    assert {page.status_code for page in pages.values()} == {404}
    texts = {re.sub(r"(csrf_token|X-CSRFToken)[^>]*", "", page.content.decode()) for page in pages.values()}
    assert len(texts) == 1
    assert "vera" not in texts.pop()


def test_invalid_links_are_limited_by_address(visitor, viewer):
    path = reverse("set_password", args=["MQ", "abc-def"])
    statuses = [visitor.get(path).status_code for _ in range(11)]
    assert statuses == [404] * 10 + [429]
    link = password_link(viewer, now=timezone.now())
    page, _ = opened(visitor, reverse("set_password", args=[link.uid, link.token]))
    assert page.status_code == 200


def test_a_link_expires(visitor, viewer, settings):
    link = password_link(viewer, now=timezone.now())
    settings.PASSWORD_RESET_TIMEOUT = -1
    page, _ = opened(visitor, reverse("set_password", args=[link.uid, link.token]))
    assert page.status_code == 404


def test_a_password_that_is_refused_is_reported_at_its_field(visitor, viewer):
    link = password_link(viewer, now=timezone.now())
    _, address = opened(visitor, reverse("set_password", args=[link.uid, link.token]))
    for fields, text in (
        ({"new": "short", "again": "short"}, "too short"),
        ({"new": SECRET["new"], "again": "another-secret"}, "do not match"),
    ):
        response = visitor.post(address, fields)
        assert response.status_code == 422
        assert text in response.content.decode()
    assert visitor.post(address, SECRET).status_code == 302


def test_the_request_log_does_not_contain_the_token(visitor, viewer, caplog):
    link = password_link(viewer, now=timezone.now())
    with caplog.at_level("INFO"):
        visitor.get(reverse("set_password", args=[link.uid, link.token]))
    assert any(record.message == "request" for record in caplog.records)
    assert not any(
        link.token in str(vars(record)) for record in caplog.records if record.name == "lcm.requests"
    )


FILE = "username,role,projects\nnora,Viewer,ccna\nomar,,\n"


def test_people_are_imported_after_a_preview(admin_client, visitor, project):
    upload = SimpleUploadedFile("people.csv", FILE.encode())
    preview = admin_client.post(reverse("person_import"), {"file": upload})
    page = preview.content.decode()
    assert "2 people will be created." in page
    assert not User.objects.filter(username="nora").exists()
    done = admin_client.post(reverse("person_import"), {"checked": FILE})
    assert done["Cache-Control"] == "no-store"
    paths = LINK.findall(done.content.decode())
    assert len(paths) == 2
    nora = User.objects.get(username="nora")
    assert (nora.role, nora.projects.get()) == (Role.VIEWER, project)
    assert opened(visitor, paths[1])[0].status_code == 200


def test_a_file_with_errors_shows_them_by_line_and_cannot_be_confirmed(admin_client, viewer):
    wrong = "username,role\nnora,Boss\nvera,\n"
    page = admin_client.post(reverse("person_import"), {"text": wrong}).content.decode()
    assert "2 lines have errors." in page
    assert "“Boss” is not a role" in page
    assert "There is already a person with the user name “vera”" in page
    assert "Create people" not in page
    confirmed = admin_client.post(reverse("person_import"), {"checked": wrong})
    assert confirmed.status_code == 422
    assert "Correct these lines first: 2, 3." in confirmed.content.decode()
    assert not User.objects.filter(username="nora").exists()
    for fields in ({}, {"text": "name\nnora\n"}):
        assert admin_client.post(reverse("person_import"), fields).status_code == 422


def test_the_links_of_an_import_are_quoted_csv(admin_client):
    address = '"a,b"@example.org'
    lines = 'username,email\n@nora,"""a,b""@example.org"\n'
    done = admin_client.post(reverse("person_import"), {"checked": lines})
    rows = list(csv.reader(StringIO(done.context["csv"])))
    assert rows[0] == ["username", "email", "link"]
    assert rows[1][:2] == ["'@nora", address]
    assert LINK.fullmatch(rows[1][2])


def test_the_pages_need_few_queries(admin_client, project):
    make_project("partners", "labs")
    lines = "username\n" + "".join(f"new-{number}\n" for number in range(50))
    requests = (
        lambda: admin_client.get(reverse("person_create")),
        lambda: admin_client.post(reverse("person_import"), {"text": lines}),
        lambda: admin_client.post(reverse("person_import"), {"checked": lines}),
    )
    for request in requests:
        with CaptureQueriesContext(connection) as captured:
            assert request().status_code == 200
        assert len(captured) <= 20
