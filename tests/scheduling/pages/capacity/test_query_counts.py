"""Pages of pools, slots and reservations need the same number of queries for 3 and 30 rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.models import LaunchAttempt, SlotState, TickRun
from tests.support.capacity_setup import make_slot, pool_named, put_on, reserve
from tests.support.factories import UserFactory, make_session

LIST_LIMIT = 12
DETAIL_LIMIT = 20


@pytest.fixture
def add_rows(pool, session, now):
    created = 0

    def add(count):
        nonlocal created
        first = make_slot(pool, 1) if not created else pool.slots.get(number=1)
        for number in range(created, created + count):
            slot = make_slot(pool, number + 2, SlotState.READY)
            other = make_slot(pool_named(f"pool-{number}"), 1, SlotState.READY)
            owner = UserFactory()
            session.project.memberships.create(user=owner)
            own_session = make_session(session.definition, session.project, owner, now=now)
            put_on(first if number < 8 else slot, own_session.reservations.get(), now, 3000 + number)
            put_on(other, reserve(other.pool, now), now)
            reserve(pool, now)
            LaunchAttempt.objects.create(slot=first, token=f"t{number}", requested_at=now, outcome="launched")
            TickRun.objects.create(pool=pool, started_at=now - timedelta(seconds=number), duration_ms=1)
        created += count
        return first

    return add


def count_queries(client, address):
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


LISTS = ["pool_list", "slot_list", "reservation_list"]
DETAILS = ["pool_detail", "pool_board", "slot_detail", "session_capacity", "session_pool"]
TIMELINES = ["slot_timeline", "pool_timeline", "session_timeline"]


def test_pages_need_the_same_queries_for_few_and_many_rows(login_as, admin, add_rows, session):
    client, slot = login_as(admin), add_rows(3)
    keys = {"slot_detail": slot.pk, "session_capacity": session.pk, "session_pool": session.pk}
    keys |= {"slot_timeline": slot.pk, "session_timeline": session.pk}
    limits = {reverse(name): LIST_LIMIT for name in LISTS}
    limits |= {reverse(name, args=[keys.get(name, slot.pool_id)]): LIST_LIMIT for name in TIMELINES}
    limits |= {f"{reverse(name)}?pool=cml-eu&q=cml": LIST_LIMIT for name in LISTS if name != "pool_list"}
    limits |= {f"{reverse('pool_list')}?q=cml": LIST_LIMIT}
    limits |= {reverse(name, args=[keys.get(name, slot.pool_id)]): DETAIL_LIMIT for name in DETAILS}
    few = {address: count_queries(client, address) for address in limits}
    add_rows(27)
    assert {address: count_queries(client, address) for address in limits} == few
    assert {address: count for address, count in few.items() if count > limits[address]} == {}
