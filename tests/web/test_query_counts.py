"""A page costs the same number of queries whether it shows three rows or thirty."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from lcm.actors import SYSTEM
from lcm.lifecycle import SessionStatus
from lcm.models import ApiToken
from lcm.services.organisation import add_member, create_domain, create_project
from tests.factories import UserFactory, make_controller, make_definition, make_session

LISTS = [
    "session_list",
    "definition_list",
    "domain_list",
    "project_list",
    "token_list",
    "change_list",
    "person_list",
    "job_list",
]
LIST_LIMIT = 12
DETAIL_LIMIT = 20


def fill(session, count: int) -> None:
    """More rows of every kind, tied to the session's definition and project."""
    start = ApiToken.objects.count()
    for number in range(start, start + count):
        owner = UserFactory()
        add_member(project=session.project, user=owner, actor=SYSTEM)
        make_session(session.definition, session.project, owner, status=SessionStatus.RUNNING)
        make_definition()
        domain = create_domain(name=f"domain-{number}", actor=SYSTEM)
        create_project(domain=domain, name="one", actor=SYSTEM)
        make_controller(f"controller-{number}", "pool:cml-eu")


def queries_for(client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
    assert response.status_code == 200
    return len(captured)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_page_asks_the_same_for_few_and_many_rows(name, client, admin, session):
    client.force_login(admin)
    fill(session, 3)
    few = queries_for(client, reverse(name))
    fill(session, 15)
    many = queries_for(client, reverse(name))
    assert few == many <= LIST_LIMIT


@pytest.mark.parametrize("kind", ["session", "definition", "domain", "project"])
def test_a_detail_page_asks_the_same_for_few_and_many_rows(kind, client, admin, session):
    client.force_login(admin)
    keys = {
        "session": session.pk,
        "definition": session.definition_id,
        "project": session.project_id,
        "domain": session.project.domain_id,
    }
    address = reverse(f"{kind}_detail", args=[keys[kind]])
    fill(session, 2)
    few = queries_for(client, address)
    fill(session, 10)
    many = queries_for(client, address)
    assert few == many <= DETAIL_LIMIT


@pytest.mark.parametrize(
    "query", ["q=campus", "status=RUNNING&status=READY", "domain=academy", "sort=ends_at"]
)
def test_filters_and_search_stay_within_the_limit(query, client, viewer, session):
    client.force_login(viewer)
    fill(session, 5)
    assert queries_for(client, f"{reverse('session_list')}?{query}") <= LIST_LIMIT
