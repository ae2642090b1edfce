"""The global search: by name or id, few queries, for everybody with a role."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.models import Pool, Slot, SlotState
from tests.factories import UserFactory, make_definition, make_session

LIMIT = 12


@pytest.fixture
def found(client, viewer):
    """`found(text)`: the addresses that the page links to."""
    client.force_login(viewer)

    def look(text: str) -> str:
        return client.get(reverse("search"), {"q": text}).content.decode()

    return look


@pytest.fixture
def slot(session):
    pool = Pool.objects.get(name="cml-eu")
    sizes = {name: getattr(pool, name) for name in ("cpu_cores", "memory_gb", "storage_gb", "max_leases")}
    return Slot.objects.create(pool=pool, number=7, state=SlotState.READY, instance_id="i-0abc", **sizes)


def test_a_session_is_found_by_the_start_of_its_id(found, session):
    here = reverse("session_detail", args=[session.pk])
    assert here in found(session.short_id)
    assert here in found(str(session.pk))
    assert here not in found("zzzz")


@pytest.mark.parametrize("text", ["campus", "CAMP"])
def test_a_definition_is_found_by_a_part_of_its_name(text, found, active_definition):
    assert reverse("definition_detail", args=[active_definition.pk]) in found(text)


def test_a_project_is_found_by_its_own_and_its_domain_s_name(found, project):
    for text in ("ccna", "academy"):
        assert reverse("project_detail", args=[project.pk]) in found(text)


def test_a_person_is_found_by_the_beginning_or_a_part_of_the_name(found, operator):
    UserFactory(username="zora", last_name="Ottokar")
    assert f"{reverse('session_list')}?owner={operator.pk}" in found("ott")
    assert "Ottokar" in found("tokar")


@pytest.mark.parametrize("text", ["cml-eu-07", "i-0abc", "cml-eu"])
def test_a_slot_is_found_by_its_name_and_its_instance(text, found, slot):
    assert reverse("slot_detail", args=[slot.pk]) in found(text)


def test_nothing_found_says_what_can_be_looked_for(found):
    assert "Nothing is called “no-such-thing”" in found("no-such-thing")


def test_text_is_shown_as_text(found):
    assert "<script>alert" not in found("<script>alert(1)</script>")


def test_an_empty_search_finds_nothing(found, session):
    assert reverse("session_detail", args=[session.pk]) not in found("")


def test_htmx_gets_the_findings_alone(client, viewer, active_definition):
    client.force_login(viewer)
    page = client.get(reverse("search"), {"q": "campus"}, headers={"HX-Request": "true"}).content.decode()
    assert 'id="found"' in page
    assert "<html" not in page


@pytest.mark.parametrize("text", ["lab", "abcd"])
def test_a_search_costs_the_same_for_few_and_many(text, client, viewer, session, slot):
    client.force_login(viewer)
    counts = []
    for more in (1, 12):
        for _ in range(more):
            make_session(make_definition(), session.project, session.owner)
        with CaptureQueriesContext(connection) as captured:
            client.get(reverse("search"), {"q": text})
        counts.append(len(captured))
    assert counts[0] == counts[1] <= LIMIT
