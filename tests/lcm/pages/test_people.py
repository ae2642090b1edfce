"""Profile, password and roles."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.roles import Role
from lcm.models import ChangeLog, User
from lcm.services.people import set_role
from tests.support.factories import PASSWORD, make_person

PROFILE = {"first_name": "Vera", "last_name": "", "email": "", "time_zone": "Asia/Tokyo", "theme": "dark"}


@pytest.fixture
def viewer_client(client, viewer):
    client.force_login(viewer)
    return client


def test_times_are_shown_in_the_time_zone_of_the_profile(viewer_client, viewer, session):
    viewer_client.post(reverse("profile"), PROFILE)
    page = viewer_client.get(reverse("session_detail", args=[session.pk])).content.decode()
    assert " JST" in page
    assert " UTC" not in page


def test_the_theme_of_the_profile_applies_immediately(viewer_client):
    viewer_client.post(reverse("set_theme"), {"theme": "light"})
    viewer_client.post(reverse("profile"), PROFILE)
    assert 'data-theme="dark"' in viewer_client.get(reverse("profile")).content.decode()


def test_the_chosen_zone_is_selected(viewer_client):
    viewer_client.post(reverse("profile"), PROFILE)
    page = viewer_client.get(reverse("profile")).content.decode()
    assert '<option value="Asia/Tokyo" selected>Asia/Tokyo</option>' in page
    assert page.count(" selected>") == 2


def test_an_unknown_time_zone_is_rejected_at_its_field(viewer_client, viewer):
    response = viewer_client.post(reverse("profile"), {**PROFILE, "time_zone": "Mars/Olympus"})
    assert response.status_code == 422
    viewer.refresh_from_db()
    assert viewer.time_zone == ""


def test_saving_a_profile_changes_only_the_profile(viewer_client, viewer):
    viewer_client.post(reverse("profile"), {**PROFILE, "is_superuser": "1", "username": "root"})
    viewer.refresh_from_db()
    assert (viewer.username, viewer.is_superuser, viewer.first_name) == ("vera", False, "Vera")


def passwords(present=PASSWORD, new="a-long-new-secret", again=None):
    return {"present": present, "new": new, "again": new if again is None else again}


def test_a_password_is_changed_and_this_browser_stays_logged_in(viewer_client, viewer):
    viewer_client.post(reverse("password_change"), passwords())
    viewer.refresh_from_db()
    assert viewer.check_password("a-long-new-secret")
    assert viewer_client.get(reverse("profile")).status_code == 200
    assert "password of vera changed" in ChangeLog.objects.values_list("message", flat=True)


@pytest.mark.parametrize(
    ("form", "error"),
    [
        (passwords(present="wrong"), "This is not your current password."),
        (passwords(new="short"), "too short"),
        (passwords(again="another-new-secret"), "The two new passwords do not match."),
    ],
)
def test_an_invalid_password_change_is_reported_at_its_field(form, error, viewer_client, viewer):
    page = viewer_client.post(reverse("password_change"), form)
    assert page.status_code == 422
    assert error in page.content.decode()
    viewer.refresh_from_db()
    assert viewer.check_password(PASSWORD)


def test_an_admin_assigns_a_role_with_a_reason(client, admin, viewer):
    client.force_login(admin)
    form = {"role": "2", "is_active": "on", "reason": "looks after the night shift"}
    client.post(reverse("person_role", args=[viewer.pk]), form)
    assert User.objects.get(pk=viewer.pk).role == Role.OPERATOR
    logged = ChangeLog.objects.get(event="person.role_changed")
    assert (logged.before["role"], logged.after["role"]) == ("Viewer", "Operator")
    assert logged.reason == "looks after the night shift"


def test_a_closed_account_is_logged_out(client, admin, viewer):
    client.force_login(viewer)
    set_role(user=viewer, role=Role.VIEWER, is_active=False, reason="left", by=admin)
    assert client.get(reverse("home")).status_code == 302


def test_a_role_change_without_a_choice_keeps_an_account_closed_that_was_just_closed(admin, viewer):
    set_role(user=User.objects.get(pk=viewer.pk), role=Role.NONE, is_active=False, reason="left", by=admin)
    changed = set_role(user=viewer, role=Role.OPERATOR, reason="promoted", by=admin)
    assert not changed.is_active


def test_people_cannot_change_their_own_role(admin):
    with pytest.raises(StateConflict, match="own role"):
        set_role(user=admin, role=Role.VIEWER, is_active=True, reason="tired", by=admin)


def test_an_admin_cannot_change_a_superuser(admin):
    root = make_person("root", is_superuser=True)
    with pytest.raises(StateConflict, match="superusers"):
        set_role(user=root, role=Role.NONE, is_active=False, reason="coup", by=admin)


def test_a_role_change_requires_a_reason(admin, viewer):
    with pytest.raises(InvalidInput, match="Enter a reason"):
        set_role(user=viewer, role=Role.ADMIN, is_active=True, reason=" ", by=admin)


def names_in(page):
    return [row.username for row in page.context["rows"].rows]


def test_people_are_found_by_the_role_that_the_list_shows(client, admin, viewer, operator, stranger):
    make_person("root", is_superuser=True)
    make_person("gone", Role.OPERATOR, is_active=False)
    operator.groups.add(*viewer.groups.all())
    client.force_login(admin)
    for role, names in {
        "Admin": ["ada", "root"],
        "Operator": ["otto"],
        "Viewer": ["vera"],
        "None": ["gone", "stan"],
    }.items():
        page = client.get(reverse("person_list"), {"role": role})
        assert names_in(page) == names
        assert {row.role.label for row in page.context["rows"].rows} == {role}
    assert names_in(client.get(reverse("person_list"), {"is_active": "false"})) == ["gone"]
    lead = "<strong>2 Admins · 1 Operator · 1 Viewer · 2 without a role.</strong>"
    assert lead in page.content.decode()


@pytest.mark.parametrize("name", ["ada", "root"])
def test_a_role_that_cannot_be_changed_shows_an_explanation_without_a_form(client, admin, viewer, name):
    make_person("root", is_superuser=True)
    client.force_login(admin)
    address = reverse("person_role", args=[User.objects.get(username=name).pk])
    rows = client.get(reverse("person_list")).content.decode()
    assert address not in rows
    assert reverse("person_role", args=[viewer.pk]) in rows
    refusal = {"ada": "You cannot change your own role", "root": "Only superusers can change a superuser"}[
        name
    ]
    for headers in ({}, {"HX-Request": "true"}):
        page = client.get(address, headers=headers).content.decode()
        assert refusal in page
        assert 'name="role"' not in page
    form = {"role": "1", "is_active": "on", "reason": "tired"}
    response = client.post(address, form)
    assert (response.status_code, refusal in response.content.decode()) == (422, True)
    assert User.objects.get(username=name).role == Role.ADMIN


def test_the_profile_shows_user_name_and_role(client, admin, viewer):
    for person, more in ((admin, False), (viewer, True)):
        client.force_login(person)
        page = client.get(reverse("profile")).content.decode()
        assert f"You are signed in as <strong>{person}</strong>, role {person.role.label}." in page
        assert ("An Admin assigns roles." in page) == more


def test_a_login_lasts_half_a_day_without_activity(client, viewer, time_machine, now):
    for hours, status in ((11, 200), (13, 302)):
        time_machine.move_to(now, tick=False)
        client.force_login(viewer)
        time_machine.move_to(now + timedelta(hours=hours), tick=False)
        assert client.get(reverse("home")).status_code == status


def login_attempt(client, name, password="guess"):
    return client.post(reverse("login"), {"username": name, "password": password})


@pytest.mark.usefixtures("one_window")
def test_ten_wrong_passwords_block_an_address(client, viewer):
    for _ in range(10):
        login_attempt(client, "vera")
    page = login_attempt(client, "vera", PASSWORD)
    assert "Too many failed attempts" in page.content.decode()


def test_guessing_one_persons_password_does_not_lock_out_others(client, viewer, operator, time_machine, now):
    time_machine.move_to(now, tick=False)
    for _ in range(11):
        login_attempt(client, "vera")
    assert login_attempt(client, "otto", PASSWORD).status_code == 302


def test_guessing_for_many_names_is_blocked_too(client, viewer, settings, time_machine, now):
    time_machine.move_to(now, tick=False)
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "2/min"
    for number in range(20):
        assert "Wrong user name" in login_attempt(client, f"unknown-{number}").content.decode()
    assert "Too many failed attempts" in login_attempt(client, "vera", PASSWORD).content.decode()


def test_wrong_tokens_do_not_lock_people_out(client, viewer, settings):
    settings.CONFIG["LOGIN_FAILURE_RATE"] = "1/min"
    client.get("/api/lablet-sessions/", HTTP_AUTHORIZATION="Bearer lcm_wrong")
    assert login_attempt(client, "vera", PASSWORD).status_code == 302


@pytest.mark.parametrize("name", ["set_theme", "login", "observer_run", "admin:login"])
@pytest.mark.parametrize("target", ["http://testserver/sessions/", "https://testserver/sessions/"])
def test_next_keeps_the_scheme(name, target, client, admin, monkeypatch):
    """A secure page redirects to secure pages only, an insecure page to both."""
    monkeypatch.setattr("scheduling.pages.observers.enqueue_run", lambda *_: None)
    admin.is_staff = True
    admin.save()
    client.force_login(admin)
    args = ["usage-record"] if name == "observer_run" else []
    call = client.get if name == "admin:login" else client.post
    for secure in (False, True):
        response = call(reverse(name, args=args), {"theme": "dark", "next": target}, secure=secure)
        followed = response.headers["Location"] == target
        assert followed == (not secure or target.startswith("https:")), (secure, response.headers["Location"])
