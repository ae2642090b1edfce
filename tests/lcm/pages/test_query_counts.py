"""A page needs the same number of queries for three rows and for thirty."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ApiToken, User
from lcm.services.event_routing import route_events
from lcm.services.organisation import add_member, create_domain, create_project
from lcm.services.subscriptions import watch_object
from tests.support.factories import UserFactory, make_controller, make_definition, make_session

LISTS = [
    "session_list",
    "definition_list",
    "domain_list",
    "project_list",
    "token_list",
    "change_list",
    "person_list",
    "job_list",
    "delivery_list",
    "rule_list",
    "webhook_list",
    "inbox_list",
]
LIST_LIMIT = 12
DETAIL_LIMIT = 20


def fill(session, count: int) -> None:
    """Add rows of every kind that refer to the session's definition and project."""
    start = ApiToken.objects.count()
    for number in range(start, start + count):
        owner = UserFactory()
        add_member(project=session.project, user=owner, actor=SYSTEM)
        started = make_session(session.definition, session.project, owner, status=SessionStatus.RUNNING)
        make_definition()
        domain = create_domain(name=f"domain-{number}", actor=SYSTEM)
        create_project(domain=domain, name="one", actor=SYSTEM)
        make_controller(f"controller-{number}", "pool:cml-eu")
        for watcher in User.objects.filter(groups__name="Admin"):
            watch_object(user=watcher, obj=started, now=timezone.now())
    route_events(now=timezone.now())


def queries_for(client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
    assert response.status_code == 200
    return len(captured)


def test_pages_need_the_same_queries_for_few_and_many_rows(client, admin, session):
    client.force_login(admin)
    keys = {
        "session": session.pk,
        "definition": session.definition_id,
        "project": session.project_id,
        "domain": session.project.domain_id,
    }
    limits = {reverse(name): LIST_LIMIT for name in LISTS}
    limits |= {reverse(f"{kind}_detail", args=[key]): DETAIL_LIMIT for kind, key in keys.items()}
    limits[reverse("notification_settings")] = LIST_LIMIT
    limits[reverse("member_list", args=[session.project_id])] = LIST_LIMIT
    fill(session, 3)
    few = {address: queries_for(client, address) for address in limits}
    fill(session, 12)
    assert {address: queries_for(client, address) for address in limits} == few
    assert {address: count for address, count in few.items() if count > limits[address]} == {}


def test_filters_and_search_stay_within_the_limit(client, viewer, session):
    client.force_login(viewer)
    fill(session, 5)
    for query in ("q=campus", "status=RUNNING&status=READY", "domain=academy", "sort=ends_at"):
        assert queries_for(client, f"{reverse('session_list')}?{query}") <= LIST_LIMIT, query
