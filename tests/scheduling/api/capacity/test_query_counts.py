"""The lists of pools, slots and reservations need the same number of queries for 3 and 30 rows."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.models import LaunchAttempt, TickRun
from tests.support.capacity_setup import make_slot, pool_named, put_on, reserve

QUERY_LIMIT = 12
LISTS = {
    "/api/pools/": "viewer",
    "/api/slots/": "viewer",
    "/api/slots/?pool=cml-eu": "controller",
    "/api/reservations/": "viewer",
    "/api/ticks/": "viewer",
}


@pytest.fixture
def add_rows(pool, now):
    created = 0

    def add(count):
        nonlocal created
        for index in range(created, created + count):
            other = pool_named(f"pool-{index}")
            put_on(make_slot(other, 1), reserve(other, now), now)
            slot = make_slot(pool, index + 1)
            LaunchAttempt.objects.create(slot=slot, token=f"t{index}", requested_at=now, outcome="lost")
            TickRun.objects.create(pool=other, started_at=now, duration_ms=1)
        created += count

    return add


def count_queries(client, path):
    with CaptureQueriesContext(connection) as queries:
        response = client.get(path)
    assert response.status_code == 200
    return len(queries), len(response.json()["results"])


@pytest.mark.parametrize(("path", "role"), LISTS.items(), ids=list(LISTS))
def test_a_list_of_30_rows_needs_as_many_queries_as_one_of_3(path, role, api, add_rows, request):
    client = api(request.getfixturevalue(role))
    add_rows(3)
    count_queries(client, path)  # the first use of a token is recorded once
    few, rows = count_queries(client, path)
    add_rows(27)
    many, more_rows = count_queries(client, path)
    assert more_rows >= rows + 20
    assert many == few <= QUERY_LIMIT


def test_a_detail_needs_few_queries(api, viewer, pool, now, django_assert_max_num_queries):
    slot, reservation = make_slot(pool, 1), reserve(pool, now)
    put_on(slot, reservation, now)
    client = api(viewer)
    for path in (f"pools/{pool.pk}", f"slots/{slot.pk}", f"reservations/{reservation.pk}"):
        with django_assert_max_num_queries(QUERY_LIMIT):
            assert client.get(f"/api/{path}/").status_code == 200
