"""Scheduler pages need the same number of queries for few and many rows."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.models import Pool, TickRun
from tests.support.factories import UserFactory, make_session
from tests.support.fleet import active_reservation

LIMIT = 12


def count_queries(client, address):
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


@pytest.fixture
def add_waiting_sessions(configure_pool, session):
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)

    def add(count):
        for _ in range(count):
            owner = UserFactory()
            session.project.memberships.create(user=owner)
            make_session(session.definition, session.project, owner, now=fleet.clock())
            fleet.clock.advance(seconds=1)
            fleet.tick_without_errors()
        return fleet

    return add


PAGES = ["queue_list", "queue_ticks", "tick_list", "decision_list", "dry_run"]


def test_pages_need_the_same_queries_for_few_and_many_rows(login_as, admin, add_waiting_sessions, session):
    client = login_as(admin)
    add_waiting_sessions(3)
    addresses = [
        *(reverse(name) for name in PAGES),
        reverse("tick_detail", args=[TickRun.objects.latest("started_at").pk]),
        reverse("reservation_detail", args=[active_reservation(session).pk]),
    ]
    few = {address: count_queries(client, address) for address in addresses}
    add_waiting_sessions(8)
    assert {address: count_queries(client, address) for address in addresses} == few
    assert {address: count for address, count in few.items() if count > LIMIT} == {}


def test_a_search_of_the_queue_needs_one_more_query_for_names_and_one_for_the_pool(
    login_as, admin, add_waiting_sessions
):
    client = login_as(admin)
    add_waiting_sessions(3)
    plain, filters = count_queries(client, reverse("queue_list")), "?q=campus&pool=cml-eu&outcome=waiting"
    assert count_queries(client, reverse("queue_list") + filters) == plain + 2 <= LIMIT + 2


@pytest.mark.parametrize("by_slot", ["", "?by=slot"])
def test_the_panel_needs_the_same_queries_for_few_and_many_rows(
    login_as, admin, add_waiting_sessions, session, by_slot
):
    client = login_as(admin)
    client.defaults["HTTP_HX_REQUEST"] = "true"
    fleet = add_waiting_sessions(3)
    address = reverse("session_wait_reasons", args=[session.pk]) + by_slot
    few = count_queries(client, address)
    add_waiting_sessions(8)
    assert count_queries(client, address) == few <= LIMIT
    Pool.objects.update(max_slots=2)
    other = make_session(session.definition, session.project, session.owner, now=fleet.clock())
    fleet.assign(other, fleet.slot(cpu_cores=4))
    # Reservations on busy slots need two more queries: one for reservations and one for their parts.
    assert count_queries(client, address) <= LIMIT + 2
