"""Lists, searches and forms of the admin."""

import re
from urllib.parse import urlencode

import pytest
from django.contrib import admin as django_admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, Kernel, LabletSession, SessionTransition
from tests.lcm.admin.browsing import add_url, change_url, delete_url, list_url
from tests.support.factories import make_person

MODELS = sorted(django_admin.site._registry, key=lambda model: model._meta.label)
WRITTEN_ONCE = ["definitionrevision", "sessiontransition", "changelog", "idempotentresponse"]
CREATED_BY_SERVICES = [*WRITTEN_ONCE, "labletdefinition", "labletsession", "kernel", "apitoken", "heartbeat"]

by_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)


@by_model
def test_lists_forms_and_histories_load(staff_client, everything, model):
    obj = everything[model._meta.model_name]
    for url in (list_url(model), f"{list_url(model)}?q=abcd", change_url(obj)):
        page = staff_client.get(url)
        assert page.status_code == 200
        assert not re.search(r"<script>|<style|\sstyle=|\son[a-z]+=", page.content.decode())
    check_history(staff_client, model, obj)


@by_model
def test_every_search_filter_and_order_of_a_list_works(staff_admin, everything, rf, model):
    """The page around the rows is always the same, so only the rows are requested."""
    model_admin = django_admin.site._registry[model]

    def change_list(query=""):
        request = rf.get(list_url(model) + query)
        request.user = staff_admin
        changes = model_admin.get_changelist_instance(request)
        assert len(changes.result_list) <= model_admin.list_per_page
        return changes

    unfiltered = change_list()
    links = {
        choice["query_string"] for spec in unfiltered.filter_specs for choice in spec.choices(unfiltered)
    }
    links |= {f"?o={number}" for number in range(1, 9)}
    for link in links:
        change_list(link)
    for text in ("a", "abcd", "ccna campus", str(everything[model._meta.model_name].pk), "“'%"):
        assert change_list(f"?{urlencode({'q': text})}").query == text


def check_history(client, model, obj):
    """The history of an object shows its entries of the change log."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_history", args=[obj.pk])
    page = client.get(url, follow=True)
    assert page.status_code == 200
    assert page.context["cl"].model is ChangeLog
    assert all(entry.object_id == str(obj.pk) for entry in page.context["cl"].result_list)


@by_model
def test_lists_are_searchable_and_do_not_count_everything(model):
    model_admin = django_admin.site._registry[model]
    assert model_admin.search_fields
    assert model_admin.list_per_page == 50
    assert not model_admin.show_full_result_count
    assert not model_admin.list_editable
    assert not model_admin.date_hierarchy


@pytest.mark.parametrize("name", WRITTEN_ONCE)
def test_records_are_read_only(staff_client, everything, name):
    obj = everything[name]
    assert staff_client.post(change_url(obj), {"actor": "someone else"}).status_code == 403
    assert staff_client.post(delete_url(obj), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [obj.pk], "post": "yes"}
    staff_client.post(list_url(obj), chosen)
    assert type(obj)._default_manager.filter(pk=obj.pk).exists()


@pytest.mark.parametrize("name", CREATED_BY_SERVICES)
def test_objects_created_elsewhere_cannot_be_added(staff_client, everything, name):
    assert staff_client.get(add_url(type(everything[name]))).status_code == 403


@pytest.mark.parametrize(
    ("name", "page"),
    [("apitoken", "/tokens/"), ("labletdefinition", "/definitions/"), ("labletsession", "/sessions/")],
)
def test_the_list_links_to_the_page_that_creates_its_objects(staff_client, everything, name, page):
    text = staff_client.get(list_url(everything[name])).content.decode()
    assert f'<a href="{page}">Open page</a>' in text


def test_a_tokens_hash_is_not_shown(staff_client, everything):
    token = everything["apitoken"]
    for url in (change_url(token), list_url(token)):
        assert token.hash not in staff_client.get(url).content.decode()


def test_people_are_found_while_typing(staff_client, everything):
    query = {"app_label": "lcm", "model_name": "labletsession", "field_name": "owner", "term": "ott"}
    found = staff_client.get(reverse("admin:autocomplete"), query).json()["results"]
    assert [each["text"] for each in found] == ["otto"]


@pytest.mark.parametrize("text", ["id", "campus", "otto", "ccna", "academy"])
def test_sessions_and_their_rows_are_found_by_id_and_names(staff_client, session, session_in, text):
    text = session.id.hex[:12] if text == "id" else text
    for model in (LabletSession, SessionTransition, Kernel):
        found = staff_client.get(list_url(model), {"q": text}).context["cl"].result_list
        assert {getattr(each, "session", each) for each in found} == {session}
        assert not staff_client.get(list_url(model), {"q": "nothing like it"}).context["cl"].result_list


def test_the_change_log_is_found_by_object_and_by_person(staff_client, session, staff_admin):
    def found(text):
        return list(staff_client.get(list_url(ChangeLog), {"q": text}).context["cl"].result_list)

    assert [entry.event for entry in found(session.id.hex)] == ["session.requested"]
    assert not found(staff_admin.username)


def test_a_list_needs_the_same_number_of_queries_for_any_length(staff_client, session_in):
    def queries():
        counts = {}
        for model in (LabletSession, SessionTransition, Kernel, ChangeLog):
            with CaptureQueriesContext(connection) as seen:
                assert staff_client.get(list_url(model)).status_code == 200
            counts[model] = len(seen)
        return counts

    for _ in range(5):
        session_in(SessionStatus.PENDING)
    few = queries()
    for _ in range(45):
        session_in(SessionStatus.PENDING)
    assert queries() == few
    assert max(few.values()) <= 8


def test_deletion_of_selected_objects_is_the_only_action(everything):
    for model, model_admin in django_admin.site._registry.items():
        assert not model_admin.actions, model


def test_long_lists_are_counted_up_to_the_cap(staff_client, monkeypatch):
    for number in range(4):
        make_person(f"person{number}")
    monkeypatch.setattr("lcm.admin.data_fixes.capped_count", lambda rows: (min(rows.count(), 3), True))
    assert staff_client.get(list_url(type(make_person("last")))).context["cl"].result_count == 3
