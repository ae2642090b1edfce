"""Saved views of lists, and each person's columns, density and default view."""

import pytest

from lcm.domain.errors import InvalidInput, NotFound
from lcm.models import ChangeLog, SavedView, User
from lcm.selectors.list_views import ListSettings, settings_of, views_for
from lcm.services import list_views
from lcm.services.list_views import (
    create_view,
    delete_view,
    set_default_view,
    set_list_layout,
    update_view,
)


@pytest.fixture
def save(viewer, now):
    def make(name="Running", owner=viewer, **values):
        return create_view(owner=owner, now=now, **{"list_name": "sessions", "name": name, **values})

    return make


def test_a_personal_view_is_visible_to_its_owner_only(save, viewer, operator):
    view = save(query="status=RUNNING", columns=["status"], density="compact")
    assert list(views_for(viewer)) == [view]
    assert not views_for(operator).exists()
    assert not ChangeLog.objects.filter(object_type="savedview").exists()


def test_a_shared_view_is_visible_to_everyone_and_logged(save, operator):
    view = save(shared=True)
    assert list(views_for(operator)) == [view]
    entry = ChangeLog.objects.get(object_type="savedview")
    assert (entry.event, entry.actor) == ("view.created", "vera")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": ""}, "name"),
        ({"list_name": "no list"}, "list_name"),
        ({"density": "huge"}, "density"),
        ({"columns": "status"}, "columns"),
        ({"columns": ["x" * 61]}, "columns"),
        ({"query": "x" * 2001}, "query"),
    ],
)
def test_an_invalid_view_is_rejected(values, field, save):
    with pytest.raises(InvalidInput) as caught:
        save(**values)
    assert list(caught.value.fields) == [field]


def test_names_are_unique_for_each_person_and_list(save, operator):
    save()
    save(owner=operator)
    save(list_name="queue")
    with pytest.raises(InvalidInput, match="already have a view with this name"):
        save()


def test_the_number_of_views_is_limited(save, monkeypatch):
    monkeypatch.setattr(list_views, "MAX_VIEWS", 1)
    save()
    with pytest.raises(InvalidInput, match="Delete one first"):
        save("Another")


@pytest.mark.parametrize("who", ["viewer", "operator", "admin"])
def test_the_owner_and_admins_change_a_shared_view(who, save, request, now):
    view, person = save(shared=True), request.getfixturevalue(who)
    if who == "operator":
        for change in (lambda: update_view(view=view, by=person, now=now, name="Other"),
                       lambda: delete_view(view=view, by=person, now=now)):  # fmt: skip
            with pytest.raises(NotFound):
                change()
        return
    update_view(view=view, by=person, now=now, name="Other")
    assert SavedView.objects.get().name == "Other"
    delete_view(view=view, by=person, now=now)
    assert not SavedView.objects.exists()
    events = ChangeLog.objects.filter(object_type="savedview").order_by("pk").values_list("event", flat=True)
    assert list(events) == ["view.created", "view.changed", "view.deleted"]


def test_admins_do_not_change_personal_views(save, admin, now):
    view = save()
    with pytest.raises(NotFound):
        delete_view(view=view, by=admin, now=now)


def test_layout_and_default_view_are_kept_apart(save, viewer):
    view = save()
    set_default_view(user=viewer, view=view, is_default=True)
    set_list_layout(user=viewer, list_name="sessions", columns=["owner"], density="compact")
    viewer.refresh_from_db()
    assert settings_of(viewer, "sessions") == ListSettings(["owner"], "compact", str(view.pk))
    set_default_view(user=viewer, view=view, is_default=False)
    assert settings_of(viewer, "sessions") == ListSettings(["owner"], "compact")
    assert settings_of(viewer, "queue") == ListSettings()


def test_settings_of_another_list_saved_meanwhile_are_kept(viewer):
    stale = User.objects.get(pk=viewer.pk)
    set_list_layout(user=viewer, list_name="queue", columns=["pool"], density="compact")
    set_list_layout(user=stale, list_name="sessions", columns=["owner"], density="compact")
    assert set(User.objects.get(pk=viewer.pk).list_settings) == {"queue", "sessions"}


def test_the_number_of_lists_with_settings_is_limited(viewer, monkeypatch):
    monkeypatch.setattr(list_views, "MAX_LISTS", 1)
    for density in ("compact", "comfortable"):
        set_list_layout(user=viewer, list_name="queue", columns=[], density=density)
    with pytest.raises(InvalidInput, match="too many lists"):
        set_list_layout(user=viewer, list_name="sessions", columns=[], density="compact")


def test_only_a_visible_view_can_be_the_default(save, operator):
    view = save()
    with pytest.raises(NotFound):
        set_default_view(user=operator, view=view, is_default=True)


def test_the_query_of_a_view_that_is_no_longer_shared_is_not_logged(save, viewer, now):
    view = save(shared=True, query="status=RUNNING")
    update_view(view=view, by=viewer, now=now, shared=False, query="q=secret")
    entry = ChangeLog.objects.get(event="view.changed")
    assert entry.after == {"shared": False, "query": ""}
