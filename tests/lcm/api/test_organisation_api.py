"""API of domains, projects, people, tokens and the change log."""

from datetime import timedelta

import pytest

from lcm.models import ApiToken, ChangeLog, Domain, Membership, Project, User
from lcm.services.tokens import find_token
from tests.support.factories import DomainFactory, make_person_token, make_project

UNKNOWN_ID = "00000000-0000-0000-0000-000000000000"


def test_a_domain_is_created_edited_and_deleted(api, admin):
    client = api(admin)
    created = client.post("/api/domains/", {"name": "academy", "description": "Students"})
    assert created.status_code == 201
    path = f"/api/domains/{created.json()['id']}/"
    assert client.patch(path, {"name": "school"}).json()["name"] == "school"
    assert client.get(path).json()["description"] == "Students"
    assert client.delete(path, {"reason": "merged"}).status_code == 204
    assert client.get(path).status_code == 404
    assert ChangeLog.objects.get(event="domain.deleted").reason == "merged"
    assert list(ChangeLog.objects.order_by("id").values_list("event", flat=True)) == [
        "domain.created",
        "domain.edited",
        "domain.deleted",
    ]


def test_a_project_is_created_edited_and_deleted(api, admin):
    client, domain = api(admin), DomainFactory(name="academy")
    created = client.post("/api/projects/", {"domain": str(domain.pk), "name": "ccna"})
    assert (created.status_code, created.json()["domain_name"]) == (201, "academy")
    path = f"/api/projects/{created.json()['id']}/"
    assert client.patch(path, {"description": "2026"}).json()["description"] == "2026"
    assert client.delete(f"{path}?reason=over").status_code == 204
    assert ChangeLog.objects.get(event="project.deleted").reason == "over"
    assert not Project.objects.exists()


def test_lists_count_related_objects(api, viewer, project):
    make_project("academy", "ccnp")
    client = api(viewer)
    assert [row["project_count"] for row in client.get("/api/domains/").json()["results"]] == [2]
    rows = client.get("/api/projects/").json()["results"]
    assert [(row["name"], row["member_count"]) for row in rows] == [("ccna", 2), ("ccnp", 0)]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/domains/", {}, "name"),
        ("/api/domains/", {"name": "No Slug"}, "name"),
        ("/api/domains/", {"name": "x" * 64}, "name"),
        ("/api/domains/", {"name": "academy"}, "name"),
        ("/api/projects/", {"name": "ccnp"}, "domain"),
        ("/api/projects/", {"name": "ccnp", "domain": UNKNOWN_ID}, "domain"),
    ],
)
def test_invalid_objects_are_rejected(path, body, field, api, admin, project):
    response = api(admin).post(path, body)
    assert (response.status_code, list(response.json()["details"])) == (400, [field])


def test_a_project_s_name_is_unique_in_a_domain(api, admin, project):
    response = api(admin).post("/api/projects/", {"domain": str(project.domain.pk), "name": "ccna"})
    assert response.status_code == 400
    assert response.json()["message"] == "This domain already has a project with this name."


def test_objects_in_use_are_not_deleted(api, admin, session):
    for path in (f"/api/domains/{session.project.domain.pk}/", f"/api/projects/{session.project.pk}/"):
        response = api(admin).delete(path, {"reason": "over"})
        assert (response.status_code, response.json()["code"]) == (409, "in_use")
    assert Domain.objects.count() == Project.objects.count() == 1


def test_members_are_added_and_removed(api, admin, project, stranger):
    client, path = api(admin), f"/api/projects/{project.pk}/members/"
    assert client.post(path, {"user": str(stranger.pk)}).status_code == 204
    assert [row["username"] for row in client.get(path).json()["results"]] == ["otto", "stan", "vera"]
    assert client.post(f"{path}remove/", {"user": str(stranger.pk), "reason": "left"}).status_code == 204
    assert [row["username"] for row in client.get(path).json()["results"]] == ["otto", "vera"]


def test_members_are_paged_by_name(api, viewer):
    project = make_project("academy", "big")
    people = [User(username=f"student-{number:02}") for number in range(51)]
    User.objects.bulk_create(people)
    Membership.objects.bulk_create(Membership(project=project, user=each) for each in people)
    page = api(viewer).get(f"/api/projects/{project.pk}/members/").json()
    assert [row["username"] for row in page["results"]] == [each.username for each in people[:50]]
    last = api(viewer).get(page["next"]).json()
    assert ([row["username"] for row in last["results"]], last["next"]) == (["student-50"], None)


def test_a_member_with_a_session_cannot_be_removed(api, admin, session):
    path = f"/api/projects/{session.project.pk}/members/remove/"
    response = api(admin).post(path, {"user": str(session.owner.pk), "reason": "left"})
    assert (response.status_code, response.json()["code"]) == (409, "in_use")


def test_people_are_listed_with_their_role_for_admins(api, viewer, operator, admin, stranger):
    assert api(operator).get("/api/users/").status_code == 403
    rows = api(admin).get("/api/users/").json()["results"]
    assert [(row["username"], row["role"]) for row in rows] == [
        ("ada", "Admin"),
        ("otto", "Operator"),
        ("stan", "None"),
        ("vera", "Viewer"),
    ]
    assert not any("password" in row for row in rows)


def test_people_are_filtered_by_project(api, admin, project):
    rows = api(admin).get("/api/users/", {"project": project.pk}).json()["results"]
    assert [row["username"] for row in rows] == ["otto", "vera"]


def test_an_operator_finds_the_owner_of_a_session_among_the_members(api, operator, project, viewer):
    rows = api(operator).get(f"/api/projects/{project.pk}/members/").json()["results"]
    assert [set(row) for row in rows] == [{"id", "username", "first_name", "last_name"}] * 2
    assert str(viewer.pk) in [row["id"] for row in rows]


def test_a_controller_s_token_is_created_and_works(api, admin, now):
    body = {"name": "worker-1", "kind": "controller", "scopes": ["pool:cml-eu"]}
    response = api(admin).post("/api/tokens/", body)
    body = response.json()
    assert (response.status_code, body["state"], body["scopes"]) == (201, "valid", ["pool:cml-eu"])
    token = find_token(key=body["key"], now=now)
    assert str(token.pk) == body["id"]
    assert token.expires_at - token.created_at == timedelta(days=90)


def test_the_key_is_shown_once(api, admin, viewer):
    body = {"name": "mine", "kind": "person", "user": str(viewer.pk)}
    created = api(admin).post("/api/tokens/", body).json()
    again = api(admin).get(f"/api/tokens/{created['id']}/").json()
    assert "key" in created
    assert again == {name: value for name, value in created.items() if name != "key"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"kind": "robot"}, "kind"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes"),
        ({"user": UNKNOWN_ID}, "user"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "2999-01-01T00:00:00Z"}, "expires_at"),
    ],
)
def test_an_invalid_token_is_rejected(change, field, api, admin):
    body = {"name": "worker-1", "kind": "controller", "scopes": ["pool:cml-eu"]}
    response = api(admin).post("/api/tokens/", body | change)
    assert (response.status_code, list(response.json()["details"])) == (400, [field])
    assert not ApiToken.objects.exists()


def test_a_token_is_rotated(api, admin, controller):
    response = api(admin).post(f"/api/tokens/{controller.token.pk}/rotate/", {"reason": "yearly"})
    assert response.status_code == 201
    assert response.json()["name"] == "controller-eu"
    assert api(controller).get("/api/lablet-sessions/").status_code == 401
    new = response.json()["key"]
    assert api().get("/api/lablet-sessions/", HTTP_AUTHORIZATION=f"Bearer {new}").status_code == 200


def test_a_token_is_revoked_once(api, admin, controller):
    path = f"/api/tokens/{controller.token.pk}/revoke/"
    assert api(admin).post(path, {"reason": "lost"}).json()["state"] == "revoked"
    assert ChangeLog.objects.get(event="token.revoked").reason == "lost"
    assert api(controller).get("/api/lablet-sessions/").status_code == 401
    assert api(admin).post(path, {"reason": "lost"}).status_code == 409


def test_tokens_are_filtered_by_state_and_kind(api, admin, controller, other_controller, viewer, now):
    make_person_token(viewer, "old")
    ApiToken.objects.filter(name="old").update(expires_at=now - timedelta(days=1))
    ApiToken.objects.filter(name="controller-us").update(revoked_at=now)

    def names(**filters):
        return sorted(row["name"] for row in api(admin).get("/api/tokens/", filters).json()["results"])

    assert names(state="valid") == ["controller-eu"]
    assert names(state=["expired", "revoked"]) == ["controller-us", "old"]
    assert names(kind="person") == ["old"]


def test_the_change_log_is_read_and_filtered(api, viewer, session, project):
    client = api(viewer)
    rows = client.get("/api/changes/", {"object_id": session.pk}).json()["results"]
    assert [row["event"] for row in rows] == ["session.requested"]
    entry = client.get(f"/api/changes/{rows[0]['id']}/").json()
    assert (entry["object_type"], entry["after"]["owner"]) == ("labletsession", "otto")
    assert client.get("/api/changes/", {"object_type": "domain"}).json()["results"] == []
    assert len(client.get("/api/changes/?object_type=&object_type=").json()["results"]) > 1
    assert len(client.get("/api/changes/", {"q": "campus"}).json()["results"]) == 2


def test_the_change_log_records_the_request_id(api, admin):
    api(admin).post("/api/domains/", {"name": "academy"}, HTTP_X_REQUEST_ID="my-request-0001")
    assert ChangeLog.objects.get().request_id == "my-request-0001"


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_the_change_log_is_read_only(method, api, admin):
    assert getattr(api(admin), method)("/api/changes/", {}).status_code == 405


NEED_A_REASON = [
    ("delete", "/api/domains/{domain}/"),
    ("delete", "/api/projects/{project}/"),
    ("delete", "/api/lablet-definitions/{definition}/"),
    ("post", "/api/projects/{project}/members/remove/"),
    ("post", "/api/tokens/{token}/rotate/"),
    ("post", "/api/tokens/{token}/revoke/"),
]


@pytest.mark.parametrize("body", [{}, {"reason": " "}, {"reason": "x" * 501}])
@pytest.mark.parametrize(("method", "path"), NEED_A_REASON)
def test_destructive_requests_require_a_reason(
    method, path, body, api, admin, project, definition, controller, viewer
):
    path = path.format(
        domain=project.domain.pk, project=project.pk, definition=definition.pk, token=controller.token.pk
    )
    member = {"user": str(viewer.pk)} if "members" in path else {}
    before = ChangeLog.objects.count()
    response = getattr(api(admin), method)(path, body | member)
    assert (response.status_code, list(response.json()["details"])) == (400, ["reason"])
    assert ChangeLog.objects.count() == before


CHANGES = [
    ("post", "/api/domains/"),
    ("patch", "/api/domains/{domain}/"),
    ("delete", "/api/domains/{domain}/"),
    ("post", "/api/projects/"),
    ("patch", "/api/projects/{project}/"),
    ("delete", "/api/projects/{project}/"),
    ("post", "/api/projects/{project}/members/"),
    ("post", "/api/projects/{project}/members/remove/"),
    ("get", "/api/tokens/"),
    ("post", "/api/tokens/"),
    ("get", "/api/tokens/{token}/"),
    ("post", "/api/tokens/{token}/rotate/"),
    ("post", "/api/tokens/{token}/revoke/"),
]


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize("role", ["viewer", "operator", "stranger"])
def test_changes_and_tokens_are_for_admins(method, path, role, api, project, controller, request):
    path = path.format(domain=project.domain.pk, project=project.pk, token=controller.token.pk)
    assert getattr(api(request.getfixturevalue(role)), method)(path).status_code == 403
