"""A page of capacity costs the same number of queries for three rows and for thirty."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.models import LaunchAttempt, SlotState, TickRun
from tests.capacity_pages.stage import make_slot, pool_named, put_on, reserve
from tests.factories import UserFactory, make_session

LIST_LIMIT = 12
DETAIL_LIMIT = 20


@pytest.fixture
def fill(pool, session, now):
    made = 0

    def add(count):
        nonlocal made
        first = make_slot(pool, 1) if not made else pool.slots.get(number=1)
        for number in range(made, made + count):
            slot = make_slot(pool, number + 2, SlotState.READY)
            other = make_slot(pool_named(f"pool-{number}"), 1, SlotState.READY)
            owner = UserFactory()
            session.project.memberships.create(user=owner)
            mine = make_session(session.definition, session.project, owner, now=now)
            put_on(first if number < 8 else slot, mine.reservations.get(), now, 3000 + number)
            put_on(other, reserve(other.pool, now), now)
            reserve(pool, now)
            LaunchAttempt.objects.create(slot=first, token=f"t{number}", requested_at=now, outcome="launched")
            TickRun.objects.create(pool=pool, started_at=now - timedelta(seconds=number), duration_ms=1)
        made += count
        return first

    return add


def cost(client, address):
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


@pytest.mark.parametrize("name", ["pool_list", "slot_list", "reservation_list"])
@pytest.mark.parametrize("query", ["", "?pool=cml-eu&q=cml"])
def test_a_list_asks_the_same_for_few_and_many_rows(name, query, by, admin, fill):
    if name == "pool_list":
        query = query.replace("pool=cml-eu&", "")
    client, address = by(admin), reverse(name) + query
    fill(3)
    few = cost(client, address)
    fill(27)
    assert cost(client, address) == few <= LIST_LIMIT


@pytest.mark.parametrize("name", ["pool_detail", "pool_board", "slot_detail", "session_capacity"])
def test_a_detail_asks_the_same_for_few_and_many_rows(name, by, admin, fill, session):
    client = by(admin)
    slot = fill(3)
    keys = {"slot_detail": slot.pk, "session_capacity": session.pk}
    address = reverse(name, args=[keys.get(name, slot.pool_id)])
    few = cost(client, address)
    fill(27)
    assert cost(client, address) == few <= DETAIL_LIMIT
