"""Columns, density and saved views on list pages."""

import re
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from lcm.domain.lifecycle import SessionStatus
from lcm.models import SavedView, User
from lcm.web.list_page import list_page, with_additions

DEFAULT = ["Session", "Status", "Definition", "Owner", "Priority", "Timeslot", "Requested", "Slot"]


@pytest.fixture
def page(client, viewer, session):
    client.force_login(viewer)
    return reverse("session_list")


def heads(response):
    return [str(column["label"]) for column in response.context["columns"]]


def save_layout(client, address, **data):
    return client.post(reverse("list_layout", args=["sessions"]), {"next": address, **data})


def save_view(client, address, **data):
    return client.post(reverse("view_create", args=["sessions"]), {"next": address, **data})


def test_a_person_chooses_columns_and_density(client, page, operator):
    assert heads(client.get(page)) == DEFAULT
    response = save_layout(client, f"{page}?q=ospf&cursor=x", columns=["owner", "status"], density="compact")
    assert response.url == f"{page}?q=ospf"
    shown = client.get(page)
    assert heads(shown) == ["Session", "Status", "Owner"]
    assert "table-dense" in shown.content.decode()
    save_layout(client, page, reset="1")
    assert heads(client.get(page)) == DEFAULT
    save_layout(client, page, columns=["id"], density="comfortable")
    assert heads(client.get(page)) == ["Session"]
    client.force_login(operator)
    assert heads(client.get(page)) == DEFAULT


@pytest.mark.parametrize(
    "data",
    [
        {"density": "huge"},
        {"density": "compact", "columns": ["x" * 61]},
        {"density": "compact", "columns": ["a\0"]},
    ],
)
def test_an_invalid_layout_is_refused_with_a_message(data, client, page):
    response = client.get(save_layout(client, page, **data).url)
    assert list(response.context["messages"])
    assert not User.objects.exclude(list_settings={}).exists()


def test_a_view_keeps_filters_columns_and_density(client, page, session_in):
    session_in(SessionStatus.RUNNING)
    query = "status=RUNNING&sort=ends_at&size=50&q=&cursor=&columns=status&density=compact"
    response = save_view(client, f"{page}?{query}", name="Running")
    view = SavedView.objects.get()
    assert view.query == "size=50&sort=ends_at&status=RUNNING"
    assert response.url == f"{page}?{view.query}&view={view.pk}"
    shown = client.get(response.url)
    assert heads(shown) == ["Session", "Status"]
    assert [row.status for row in shown.context["rows"].rows] == ["RUNNING"]
    assert not shown.context["layout"].is_changed
    assert client.get(f"{page}?view={view.pk}&status=READY").context["layout"].is_changed
    assert client.get(f"{response.url}&columns=owner").context["layout"].is_changed
    assert heads(client.get(page)) == DEFAULT


def test_columns_chosen_in_a_view_belong_to_the_url_until_the_view_is_updated(client, page):
    address = save_view(client, page, name="Mine").url
    response = save_layout(client, address, columns=["owner"], density="comfortable")
    assert response.url == f"{address}&columns=owner&density=comfortable"
    assert heads(client.get(response.url)) == ["Session", "Owner"]
    assert not User.objects.exclude(list_settings={}).exists()
    view = SavedView.objects.get()
    edit = reverse("view_edit", args=[view.pk])
    assert 'value="Mine"' in client.get(edit, {"next": response.url}).content.decode()
    client.post(edit, {"next": response.url, "name": "Owners", "shared": "on"})
    view.refresh_from_db()
    assert (view.name, view.shared, view.columns) == ("Owners", True, ["owner"])
    assert save_layout(client, response.url, reset="1").url == address


def test_a_list_opens_with_the_default_view(client, page, operator):
    address = save_view(client, f"{page}?status=RUNNING", name="Running", shared="on").url
    default = reverse("view_default", args=[SavedView.objects.get().pk])
    for person in (None, operator):
        if person:
            client.force_login(person)
        assert client.get(page).status_code == 200
        client.post(default, {"next": address, "is_default": "1"})
        assert client.get(page).url == address
        shown = client.get(address)
        assert shown.context["layout"].is_default
        cleared = client.get(f"{page}?{shown.context['cleared_query']}")
        assert (cleared.status_code, cleared.context["is_filtered"]) == (200, False)
    client.post(default, {"next": address})
    assert client.get(page).status_code == 200


def test_the_default_is_ignored_once_its_view_is_no_longer_shared(client, page, operator):
    save_view(client, page, name="Mine", shared="on")
    view = SavedView.objects.get()
    client.force_login(operator)
    client.post(reverse("view_default", args=[view.pk]), {"next": page, "is_default": "1"})
    assert client.get(page).status_code == 302
    SavedView.objects.update(shared=False)
    assert client.get(page).status_code == 200
    assert client.get(f"{page}?view={view.pk}").context["layout"].view is None


def test_a_view_is_deleted(client, page, viewer, operator):
    address = save_view(client, page, name="Mine", shared="on").url
    delete = reverse("view_delete", args=[SavedView.objects.get().pk])
    client.force_login(operator)
    assert client.get(delete).status_code == 404
    assert "Delete view" not in client.get(address).content.decode()
    client.force_login(viewer)
    assert client.post(delete, {"next": address}).url == f"{page}?view="
    assert not SavedView.objects.exists()
    User.objects.update(list_settings={"sessions": {"default_view": delete.split("/")[2]}})
    assert client.get(page).status_code == 200


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "http://testserver//elsewhere.example/"])
@pytest.mark.parametrize("name", ["list_layout", "view_create"])
def test_the_way_back_stays_on_this_site(name, back, client, page):
    data = {"next": back, "name": "x", "density": "compact"}
    response = client.post(reverse(name, args=["sessions"]), data)
    assert response.url.startswith(reverse("home"))
    assert not response.url.startswith("//")


def test_a_partial_response_updates_the_menus_but_a_poll_does_not(client, page):
    def parts(**headers):
        return client.get(reverse("queue_list"), headers={"HX-Request": "true", **headers}).content.decode()

    assert 'id="list-tools" hx-swap-oob="true"' in parts()
    assert "list-tools" not in parts(**{"HX-Trigger": "poll"})


def test_a_list_with_views_needs_at_most_twelve_queries(client, page, viewer, admin):
    for number in range(10):
        owner = viewer if number % 2 else admin
        SavedView.objects.create(list_name="sessions", name=f"v{number}", owner=owner, shared=True)
    mine, other = (SavedView.objects.filter(owner=each).first() for each in (viewer, admin))
    User.objects.update(list_settings={"sessions": {"default_view": str(mine.pk)}})
    for query in ("view=", f"view={mine.pk}", f"view={other.pk}"):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"{page}?{query}").status_code == 200
        assert len(captured) <= 12, query


def list_pages():
    """Return every list page that a URL shows without arguments."""
    for pattern in get_resolver().url_patterns:
        view = getattr(pattern, "callback", None)
        while hasattr(view, "__wrapped__"):
            view = view.__wrapped__
        if getattr(view, "func", None) is list_page:
            yield with_additions(view.keywords["page"])


def test_each_column_has_its_own_key():
    pages = list(list_pages())
    assert len(pages) >= 8
    for each in pages:
        keys = [column.key for column in each.columns]
        assert len(set(keys)) == len(keys), each.export_name
        assert all(re.fullmatch(r"[a-z0-9_-]{1,60}", key) for key in keys), keys
    assert len({each.export_name for each in pages}) == len(pages)


def test_a_person_can_choose_columns_that_a_list_leaves_out(client, page):
    definitions = reverse("definition_list")
    assert "Imported" not in heads(client.get(definitions))
    query = urlencode({"columns": "definition,status,imported"})
    assert heads(client.get(f"{definitions}?{query}")) == ["Definition", "Status", "Imported"]
