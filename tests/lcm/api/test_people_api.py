"""API of people: adding them, their roles, and links to set a password."""

import pytest
from django.test import Client

from lcm.domain.roles import Role
from lcm.models import ChangeLog, User
from tests.support.factories import make_person

REASON = {"reason": "new colleague"}


def opens(link):
    return Client().get(link, follow=True).status_code == 200


def test_a_person_is_added_with_a_link_to_set_a_password(api, admin, project):
    body = {
        "username": "nora",
        "email": "nora@example.org",
        "role": "Operator",
        "projects": [str(project.pk)],
    }
    response = api(admin).post("/api/users/", body, headers={"Idempotency-Key": "nora"})
    created = response.json()
    assert (response.status_code, created["role"]) == (201, "Operator")
    assert created["password_link"].startswith("http://testserver/set-password/")
    assert opens(created["password_link"])
    nora = User.objects.get(username="nora")
    assert (nora.role, nora.projects.get()) == (Role.OPERATOR, project)
    replayed = api(admin).post("/api/users/", body, headers={"Idempotency-Key": "nora"})
    assert (replayed.status_code, replayed.json()["password_link"]) == (201, None)
    assert User.objects.filter(username="nora").count() == 1


@pytest.mark.parametrize(
    ("fields", "rejected"),
    [
        ({"username": ""}, "username"),
        ({"username": "vera"}, "username"),
        ({"username": "no spaces"}, "username"),
        ({"email": "nora"}, "email"),
        ({"role": "Boss"}, "role"),
        ({"projects": ["00000000-0000-0000-0000-000000000000"]}, "projects"),
        ({"is_superuser": True}, "is_superuser"),
    ],
)
def test_an_invalid_person_is_rejected_at_the_field(fields, rejected, api, admin, viewer):
    response = api(admin).post("/api/users/", {"username": "nora", **fields})
    assert (response.status_code, list(response.json()["details"])) == (400, [rejected])
    assert not User.objects.filter(username="nora").exists()


def test_a_new_link_ends_earlier_ones(api, admin, viewer):
    path = f"/api/users/{viewer.pk}/password-link"
    assert api(admin).post(path, {}).status_code == 400
    first, second = (api(admin).post(path, REASON).json()["password_link"] for _ in range(2))
    assert not opens(first)
    assert opens(second)
    assert ChangeLog.objects.filter(event="person.invited", reason=REASON["reason"]).count() == 2
    assert second.split("/")[-1] not in str(list(ChangeLog.objects.values()))


def test_a_role_is_set_and_an_account_closed(api, admin, viewer):
    path = f"/api/users/{viewer.pk}/role"
    response = api(admin).post(path, {"role": "Operator", **REASON})
    assert (response.status_code, response.json()["role"], response.json()["is_active"]) == (
        200, "Operator", True,
    )  # fmt: skip
    closed = api(admin).post(path, {"role": "Operator", "is_active": False, **REASON})
    assert closed.json()["is_active"] is False
    link = api(admin).post(f"/api/users/{viewer.pk}/password-link", REASON)
    assert (link.status_code, link.json()["code"]) == (409, "state_conflict")


@pytest.mark.parametrize("call", ["role", "password-link"])
def test_own_accounts_and_superusers_are_refused(call, api, admin):
    body = {**REASON, **({"role": "Viewer"} if call == "role" else {})}
    for person in (admin, make_person("root", is_superuser=True)):
        assert api(admin).post(f"/api/users/{person.pk}/{call}", body).status_code == 409
