"""The global search: by name or id, with few queries, for every role."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from lcm.web.search import MAX_HITS, MAX_SUGGESTIONS
from scheduling.models import Pool, Slot, SlotState
from tests.support.factories import UserFactory, make_definition, make_session

LIMIT = 12


@pytest.fixture
def search_page(client, viewer):
    """`search_page(text)`: the URLs that the page links to."""
    client.force_login(viewer)

    def search(text: str) -> str:
        return client.get(reverse("search"), {"q": text}).content.decode()

    return search


@pytest.fixture
def slot(session):
    pool = Pool.objects.get(name="cml-eu")
    sizes = {name: getattr(pool, name) for name in ("cpu_cores", "memory_gb", "storage_gb", "max_leases")}
    return Slot.objects.create(pool=pool, number=7, state=SlotState.READY, instance_id="i-0abc", **sizes)


@pytest.mark.parametrize("kind", ["session", "definition", "slot", "pool", "project", "person"])
def test_objects_are_found_by_the_start_of_their_id(kind, search_page, session, slot):
    owner = f"{reverse('session_list')}?owner={session.owner_id}"
    pages = {
        "session": (session.pk, reverse("session_detail", args=[session.pk])),
        "definition": (session.definition_id, reverse("definition_detail", args=[session.definition_id])),
        "slot": (slot.pk, reverse("slot_detail", args=[slot.pk])),
        "pool": (slot.pool_id, reverse("pool_detail", args=[slot.pool_id])),
        "project": (session.project_id, reverse("project_detail", args=[session.project_id])),
        "person": (session.owner_id, owner),
    }
    key, url = pages[kind]
    for text in (str(key), key.hex[:6], key.hex[:6].upper()):
        assert url in search_page(text), text
    assert url not in search_page("zzzz")


@pytest.mark.parametrize("text", ["campus", "CAMP"])
def test_a_definition_is_found_by_a_part_of_its_name(text, search_page, active_definition):
    assert reverse("definition_detail", args=[active_definition.pk]) in search_page(text)


def test_a_project_is_found_by_its_own_and_its_domain_s_name(search_page, project):
    for text in ("ccna", "academy"):
        assert reverse("project_detail", args=[project.pk]) in search_page(text)


def test_a_person_is_found_by_the_beginning_or_a_part_of_the_name(search_page, operator):
    UserFactory(username="zora", last_name="Ottokar")
    assert f"{reverse('session_list')}?owner={operator.pk}" in search_page("ott")
    assert "Ottokar" in search_page("tokar")


def test_people_whose_names_start_with_the_text_come_first(search_page):
    UserFactory(username="anna", last_name="Tokarz")
    UserFactory(username="tokarz")
    page = search_page("tokar")
    assert page.index("tokarz") < page.index("Tokarz")


@pytest.mark.parametrize(("role", "has_link"), [("viewer", False), ("admin", True)])
def test_admins_get_a_link_to_all_matching_people(role, has_link, client, request):
    client.force_login(request.getfixturevalue(role))
    for number in range(MAX_HITS + 1):
        UserFactory(username=f"learner-{number}")
    page = client.get(reverse("search"), {"q": "learner"}).content.decode()
    assert f"More than {MAX_HITS} results for “learner”." in page
    assert (f"{reverse('person_list')}?q=learner" in page) is has_link


def test_the_number_of_results_comes_first(search_page, active_definition):
    assert "1 result for “campus”." in search_page("campus")


@pytest.mark.parametrize("text", ["cml-eu-07", "i-0abc", "cml-eu"])
def test_a_slot_is_found_by_its_name_and_its_instance(text, search_page, slot):
    assert reverse("slot_detail", args=[slot.pk]) in search_page(text)


def test_an_empty_result_explains_what_can_be_searched(search_page):
    assert "No results for “no-such-thing”" in search_page("no-such-thing")


def test_the_search_text_is_escaped(search_page):
    assert "<script>alert" not in search_page("<script>alert(1)</script>")


def test_an_empty_search_finds_nothing(search_page, session):
    assert reverse("session_detail", args=[session.pk]) not in search_page("")


def test_htmx_gets_only_the_results(client, viewer, active_definition):
    client.force_login(viewer)
    page = client.get(reverse("search"), {"q": "campus"}, headers={"HX-Request": "true"}).content.decode()
    assert 'id="found"' in page
    assert '<p class="lead" id="search-lead" role="status" hx-swap-oob="true">' in page
    assert "<html" not in page


def test_suggestions_are_links_to_the_first_results_of_each_kind(client, viewer, active_definition):
    client.force_login(viewer)
    for number in range(MAX_SUGGESTIONS + 1):
        UserFactory(username=f"campus-{number}")
    page = client.get(reverse("search_suggestions"), {"q": "campus"}).content.decode()
    url = reverse("definition_detail", args=[active_definition.pk])
    assert f'role="option" tabindex="-1" href="{url}"' in page
    assert page.count("?owner=") == MAX_SUGGESTIONS
    assert f'href="{reverse("search")}?q=campus"' in page
    assert "<html" not in page


def test_suggestions_for_nothing_and_for_an_unknown_name_contain_no_object(client, viewer, session):
    client.force_login(viewer)
    assert client.get(reverse("search_suggestions"), {"q": " "}).content.decode().strip() == ""
    page = client.get(reverse("search_suggestions"), {"q": "<no-such>"}).content.decode()
    assert "No results for “&lt;no-such&gt;”" in page
    assert page.count('role="option"') == 1


@pytest.mark.parametrize("url", ["search", "search_suggestions"])
@pytest.mark.parametrize("text", ["lab", "abcd"])
def test_a_search_needs_the_same_queries_for_few_and_many_rows(text, url, client, viewer, session, slot):
    client.force_login(viewer)
    counts = []
    for more in (1, 12):
        for _ in range(more):
            make_session(make_definition(), session.project, session.owner)
        with CaptureQueriesContext(connection) as captured:
            client.get(reverse(url), {"q": text})
        counts.append(len(captured))
    assert counts[0] == counts[1] <= LIMIT
