"""API of saved views of lists."""

import pytest
from django.urls import reverse

from lcm.models import SavedView

VIEW = {
    "list_name": "sessions",
    "name": "Running",
    "query": "status=RUNNING&cursor=x&q=&size=50",
    "columns": ["status"],
    "density": "compact",
}


@pytest.fixture
def path(api, viewer):
    """The URL of a view of the viewer."""
    created = api(viewer).post("/api/saved-views/", VIEW)
    assert created.status_code == 201, created.json()
    return f"/api/saved-views/{created.json()['id']}/"


def test_a_view_is_saved_and_opened_on_the_page(api, client, path, viewer):
    shown = api(viewer).get(path).json()
    assert (shown["query"], shown["owner_name"], shown["shared"]) == ("size=50&status=RUNNING", "vera", False)
    client.force_login(viewer)
    view = SavedView.objects.get()
    response = client.get(f"{reverse('session_list')}?{view.query}&view={view.pk}")
    assert [str(column["label"]) for column in response.context["columns"]] == ["Session", "Status"]
    assert not response.context["layout"].is_changed


def test_others_see_shared_views_only_and_admins_change_them(api, path, viewer, operator, admin):
    assert api(operator).get(path).status_code == 404
    assert api(viewer).patch(path, {"shared": True}).json()["shared"] is True
    assert api(operator).get(path).status_code == 200
    found = api(operator).get("/api/saved-views/", {"list_name": "sessions", "shared": "true"})
    assert [row["name"] for row in found.json()["results"]] == ["Running"]
    assert api(operator).patch(path, {"name": "Mine"}).status_code == 404
    assert api(operator).delete(path).status_code == 404
    assert api(admin).patch(path, {"name": "All running"}).json()["name"] == "All running"
    assert api(admin).delete(path).status_code == 204
    assert not SavedView.objects.exists()


def test_a_default_belongs_to_the_caller(api, client, path, viewer, operator):
    api(viewer).patch(path, {"shared": True})
    assert api(operator).post(f"{path}default", {}).json()["is_default"] is True
    assert api(viewer).get(path).json()["is_default"] is False
    client.force_login(operator)
    assert "view=" in client.get(reverse("session_list")).url
    assert api(operator).post(f"{path}default", {"is_default": False}).json()["is_default"] is False
    assert client.get(reverse("session_list")).status_code == 200


@pytest.mark.parametrize(
    ("fields", "rejected"),
    [
        ({"name": "Running"}, "__all__"),
        ({"list_name": "No list"}, "list_name"),
        ({"columns": ["x" * 61]}, "columns"),
        ({"density": "huge"}, "density"),
        ({"query": "&" * 2000}, "query"),
        ({"query": "q=" + "ä" * 500}, "query"),
        ({"owner": "00000000-0000-0000-0000-000000000000"}, "owner"),
    ],
)
def test_an_invalid_view_is_rejected_at_the_field(fields, rejected, api, path, viewer):
    response = api(viewer).post("/api/saved-views/", {**VIEW, "name": "Other", **fields})
    assert response.status_code == 400
    assert [name.partition(".")[0] for name in response.json()["details"]] == [rejected]
