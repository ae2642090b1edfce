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
MADE_ELSEWHERE = [*WRITTEN_ONCE, "labletdefinition", "labletsession", "kernel", "apitoken", "heartbeat"]

by_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.model_name)


@by_model
def test_lists_forms_and_histories_load(client_of_fixer, everything, model):
    obj = everything[model._meta.model_name]
    for url in (list_url(model), f"{list_url(model)}?q=abcd", change_url(obj)):
        page = client_of_fixer.get(url)
        assert page.status_code == 200
        assert not re.search(r"<script>|<style|\sstyle=|\son[a-z]+=", page.content.decode())
    check_history(client_of_fixer, model, obj)


@by_model
def test_every_search_filter_and_order_of_a_list_works(fixer, everything, rf, model):
    """The page around the rows is always the same, so only the rows are requested."""
    shown = django_admin.site._registry[model]

    def listed(query=""):
        request = rf.get(list_url(model) + query)
        request.user = fixer
        found = shown.get_changelist_instance(request)
        assert len(found.result_list) <= shown.list_per_page
        return found

    whole = listed()
    links = {choice["query_string"] for spec in whole.filter_specs for choice in spec.choices(whole)}
    links |= {f"?o={number}" for number in range(1, 9)}
    for link in links:
        listed(link)
    for text in ("a", "abcd", "ccna campus", str(everything[model._meta.model_name].pk), "“'%"):
        assert listed(f"?{urlencode({'q': text})}").query == text


def check_history(client, model, obj):
    """The history of an object shows its entries of the change log."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_history", args=[obj.pk])
    page = client.get(url, follow=True)
    assert page.status_code == 200
    assert page.context["cl"].model is ChangeLog
    assert all(entry.object_id == str(obj.pk) for entry in page.context["cl"].result_list)


@by_model
def test_lists_are_searchable_and_do_not_count_everything(model):
    shown = django_admin.site._registry[model]
    assert shown.search_fields
    assert shown.list_per_page == 50
    assert not shown.show_full_result_count
    assert not shown.list_editable
    assert not shown.date_hierarchy


@pytest.mark.parametrize("name", WRITTEN_ONCE)
def test_records_are_read_only(client_of_fixer, everything, name):
    obj = everything[name]
    assert client_of_fixer.post(change_url(obj), {"actor": "someone else"}).status_code == 403
    assert client_of_fixer.post(delete_url(obj), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [obj.pk], "post": "yes"}
    client_of_fixer.post(list_url(obj), chosen)
    assert type(obj)._default_manager.filter(pk=obj.pk).exists()


@pytest.mark.parametrize("name", MADE_ELSEWHERE)
def test_objects_created_elsewhere_cannot_be_added(client_of_fixer, everything, name):
    assert client_of_fixer.get(add_url(type(everything[name]))).status_code == 403


@pytest.mark.parametrize(
    ("name", "page"),
    [("apitoken", "/tokens/"), ("labletdefinition", "/definitions/"), ("labletsession", "/sessions/")],
)
def test_the_list_links_to_the_page_that_creates_its_objects(client_of_fixer, everything, name, page):
    text = client_of_fixer.get(list_url(everything[name])).content.decode()
    assert f'<a href="{page}">Open page</a>' in text


def test_a_tokens_hash_is_not_shown(client_of_fixer, everything):
    token = everything["apitoken"]
    for url in (change_url(token), list_url(token)):
        assert token.hash not in client_of_fixer.get(url).content.decode()


def test_people_are_found_while_typing(client_of_fixer, everything):
    asked = {"app_label": "lcm", "model_name": "labletsession", "field_name": "owner", "term": "ott"}
    found = client_of_fixer.get(reverse("admin:autocomplete"), asked).json()["results"]
    assert [each["text"] for each in found] == ["otto"]


@pytest.mark.parametrize("text", ["id", "campus", "otto", "ccna", "academy"])
def test_sessions_and_their_rows_are_found_by_id_and_names(client_of_fixer, session, session_in, text):
    text = session.id.hex[:12] if text == "id" else text
    for model in (LabletSession, SessionTransition, Kernel):
        found = client_of_fixer.get(list_url(model), {"q": text}).context["cl"].result_list
        assert {getattr(each, "session", each) for each in found} == {session}
        assert not client_of_fixer.get(list_url(model), {"q": "nothing like it"}).context["cl"].result_list


def test_the_change_log_is_found_by_object_and_by_person(client_of_fixer, session, fixer):
    def found(text):
        return list(client_of_fixer.get(list_url(ChangeLog), {"q": text}).context["cl"].result_list)

    assert [entry.event for entry in found(session.id.hex)] == ["session_created"]
    assert not found(fixer.username)


def test_a_list_needs_the_same_number_of_queries_for_any_length(client_of_fixer, session_in):
    def queries():
        counts = {}
        for model in (LabletSession, SessionTransition, Kernel, ChangeLog):
            with CaptureQueriesContext(connection) as seen:
                assert client_of_fixer.get(list_url(model)).status_code == 200
            counts[model] = len(seen)
        return counts

    for _ in range(5):
        session_in(SessionStatus.PENDING)
    few = queries()
    for _ in range(45):
        session_in(SessionStatus.PENDING)
    assert queries() == few
    assert max(few.values()) <= 8


def test_a_project_with_very_many_members_does_not_list_them_on_its_page(
    client_of_fixer, project, monkeypatch
):
    assert len(client_of_fixer.get(change_url(project)).context["inline_admin_formsets"]) == 1
    monkeypatch.setattr("lcm.admin.organisation.MEMBERS_ON_PAGE", 1)
    assert not client_of_fixer.get(change_url(project)).context["inline_admin_formsets"]


def test_long_lists_are_counted_up_to_the_cap(client_of_fixer, monkeypatch):
    for number in range(4):
        make_person(f"person{number}")
    monkeypatch.setattr("lcm.admin.base.capped_count", lambda rows: (min(rows.count(), 3), True))
    assert client_of_fixer.get(list_url(type(make_person("last")))).context["cl"].result_count == 3
