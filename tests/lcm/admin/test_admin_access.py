"""Access to the admin."""

import pytest
from django.apps import apps
from django.contrib import admin as django_admin
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from lcm.domain.roles import Role
from lcm.models import ChangeLog, User
from tests.lcm.admin.browsing import change_url, delete_url, edit, list_url, log_of
from tests.support.factories import PASSWORD, make_person

MODELS = sorted(django_admin.site._registry, key=lambda model: model._meta.label)


def logged_in(person):
    client = Client()
    client.force_login(person)
    return client


def test_every_model_of_lcm_is_registered():
    lcm_models = {
        model
        for app in ("lcm", "scheduling", "fairshare", "observations")
        for model in apps.get_app_config(app).get_models()
    }
    assert lcm_models | {Group} == set(MODELS)


@pytest.mark.parametrize(
    ("role", "is_staff"),
    [
        (Role.VIEWER, False),
        (Role.OPERATOR, False),
        (Role.ADMIN, False),
        (Role.NONE, True),
        (Role.VIEWER, True),
        (Role.OPERATOR, True),
    ],
)
def test_people_without_staff_status_or_the_admin_role_get_an_explanation(db, role, is_staff):
    client = logged_in(make_person("somebody", role, is_staff=is_staff))
    for url in (reverse("admin:index"), *map(list_url, MODELS)):
        page = client.get(url, follow=True)
        assert page.status_code == 403
        assert "role Admin" in page.content.decode()


def test_anonymous_users_are_redirected_to_the_login_page(db):
    page = Client().get(reverse("admin:index"), follow=True)
    assert page.redirect_chain[-1][0] == "/login?next=/admin/"


def test_a_closed_account_has_no_access(db):
    person = make_person("gone", Role.ADMIN, is_staff=True)
    client = logged_in(person)
    User.objects.filter(pk=person.pk).update(is_active=False)
    assert client.get(reverse("admin:index")).status_code == 302


def test_the_redirect_after_login_stays_on_this_site(staff_client):
    login = reverse("admin:login")
    assert staff_client.get(f"{login}?next=/admin/lcm/").url == "/admin/lcm/"
    assert staff_client.get(f"{login}?next=https://evil.example/").url == "/admin/"


@pytest.mark.parametrize("kind", ["admin", "superuser"])
def test_admins_on_the_staff_and_superusers_see_the_start_page(db, kind):
    is_super = kind == "superuser"
    person = make_person(kind, Role.NONE if is_super else Role.ADMIN, is_staff=True, is_superuser=is_super)
    page = logged_in(person).get(reverse("admin:index"))
    text = page.content.decode()
    assert page.status_code == 200
    assert "LCM data fixes" in text
    assert 'href="/"' in text
    assert all(list_url(model) in text for model in MODELS)


def test_only_superusers_can_create_superusers(staff_client, staff_admin):
    edit(staff_client, staff_admin, is_superuser="on")
    staff_admin.refresh_from_db()
    assert not staff_admin.is_superuser


def test_only_superusers_can_change_a_superuser(staff_client):
    superuser = make_person("boss", is_superuser=True, is_staff=True)
    password = reverse("admin:auth_user_password_change", args=[superuser.pk])
    assert staff_client.get(password).status_code == 403
    assert staff_client.post(change_url(superuser), {"username": "x"}).status_code == 403
    assert staff_client.get(delete_url(superuser)).status_code == 403


def test_people_cannot_delete_their_own_account(staff_client, staff_admin):
    assert staff_client.get(delete_url(staff_admin)).status_code == 403


def test_role_groups_cannot_be_changed(staff_client):
    role = Group.objects.get(name="Viewer")
    assert staff_client.post(change_url(role), {"name": "Guests"}).status_code == 403
    assert staff_client.get(delete_url(role)).status_code == 403


def test_changing_ones_own_password_is_logged(staff_client, staff_admin):
    new_password = "another long passphrase"
    sent = {"old_password": PASSWORD, "new_password1": new_password, "new_password2": new_password}
    staff_client.post(reverse("admin:password_change"), sent)
    assert [entry.event for entry in log_of(staff_admin)] == ["person.password_changed"]
    staff_client.post(reverse("admin:password_change"), {**sent, "old_password": "wrong"})
    assert ChangeLog.objects.count() == 1
