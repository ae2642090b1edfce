"""Keyset pagination in any order, over any rows."""

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.domain.errors import InvalidInput
from lcm.models import ChangeLog, Domain, LabletSession
from lcm.web.pagination import capped_count, page_of
from tests.support.factories import DomainFactory

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
in_a_test_database = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# Few distinct times for many rows, so that there are ties.
minutes = st.lists(st.integers(0, 4), max_size=25)
sorts = st.sampled_from(["created_at", "-created_at", "name", "-name"])


def fill(ages):
    Domain.objects.all().delete()
    Domain.objects.bulk_create(
        [
            Domain(name=f"d-{index}", created_at=START + timedelta(minutes=age))
            for index, age in enumerate(ages)
        ]
    )


def in_order(sort):
    mark = "-" if sort.startswith("-") else ""
    return list(Domain.objects.order_by(sort, f"{mark}pk").values_list("pk", flat=True))


def walk_forward(sort, size):
    pages, cursor = [], ""
    while cursor is not None:
        assert len(pages) <= Domain.objects.count(), "the pages go round in circles"
        page = page_of(Domain.objects.all(), sort=sort, size=size, cursor=cursor)
        pages.append(page)
        cursor = page.next
    return pages


def walk_backward(last, sort, size):
    pages = [last]
    while pages[0].previous is not None:
        assert len(pages) <= Domain.objects.count(), "the pages go round in circles"
        pages.insert(0, page_of(Domain.objects.all(), sort=sort, size=size, cursor=pages[0].previous))
    return pages


def ids(pages):
    return [row.pk for page in pages for row in page.rows]


@in_a_test_database
@given(ages=minutes, sort=sorts, size=st.integers(1, 9))
def test_walking_forward_visits_each_row_once_in_order(db, ages, sort, size):
    fill(ages)
    pages = walk_forward(sort, size)
    assert ids(pages) == in_order(sort)
    assert all(len(page.rows) == size for page in pages[:-1])


@in_a_test_database
@given(ages=minutes, sort=sorts, size=st.integers(1, 9))
def test_walking_back_visits_each_row_once_in_order(db, ages, sort, size):
    fill(ages)
    forward = walk_forward(sort, size)
    backward = walk_backward(forward[-1], sort, size)
    assert ids(backward) == in_order(sort)
    assert backward[0].previous is None


@in_a_test_database
@given(ages=minutes, sort=sorts, size=st.integers(1, 9))
def test_a_page_knows_its_first_and_last_row(db, ages, sort, size):
    fill(ages)
    forward = walk_forward(sort, size)
    counted = 0
    for page in forward:
        assert (page.first, page.last) == (counted + 1, counted + len(page.rows))
        counted += len(page.rows)
    for page, same_page in zip(forward, walk_backward(forward[-1], sort, size), strict=True):
        assert page.first == same_page.first


@pytest.mark.django_db
def test_a_row_inserted_between_pages_neither_repeats_nor_hides_rows():
    fill([1, 3, 5])
    first = page_of(Domain.objects.all(), sort="created_at", size=2)
    DomainFactory(name="early", created_at=START)
    DomainFactory(name="late", created_at=START + timedelta(minutes=4))
    second = page_of(Domain.objects.all(), sort="created_at", size=2, cursor=first.next)
    assert [row.name for row in first.rows + second.rows] == ["d-0", "d-1", "late", "d-2"]


@pytest.mark.django_db
def test_rows_are_sorted_by_a_column_of_another_table():
    page = page_of(LabletSession.objects.all(), sort="project__name", size=5)
    assert (page.rows, page.next, page.previous) == ([], None, None)


def encode_cursor(*parts):
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


UUID = "0" * 32
BAD = {
    "text": (Domain, "name", "nonsense"),
    "not base64": (Domain, "name", "%%%"),
    "not ASCII": (Domain, "name", "äöü"),
    "no list": (Domain, "name", base64.urlsafe_b64encode(b"{}").decode()),
    "a number": (Domain, "name", base64.urlsafe_b64encode(b"12").decode()),
    "too few": (Domain, "name", encode_cursor(0, 0, "a")),
    "too many": (Domain, "name", encode_cursor(0, 0, "a", UUID, 1)),
    "no id": (Domain, "name", encode_cursor(0, 0, "a", "not-an-id")),
    "null id": (Domain, "name", encode_cursor(0, 0, "a", None)),
    "null value": (Domain, "name", encode_cursor(0, 0, None, UUID)),
    "skipped is text": (Domain, "name", encode_cursor(0, "x", "a", UUID)),
    "skipped is negative": (Domain, "name", encode_cursor(0, -1, "a", UUID)),
    "skipped is huge": (Domain, "name", encode_cursor(0, 2**80, "a", UUID)),
    "NUL in a text": (Domain, "name", encode_cursor(0, 0, "a\x00b", UUID)),
    "half a character": (Domain, "name", encode_cursor(0, 0, "\ud800", UUID)),
    "no time": (Domain, "created_at", encode_cursor(0, 0, "yesterday", UUID)),
    "a time without a zone": (Domain, "created_at", encode_cursor(0, 0, "2026-03-02T09:00:00", UUID)),
    "a time before all times": (Domain, "created_at", encode_cursor(0, 0, "0001-01-01T00:00:00+14:00", UUID)),
    "a list for a time": (Domain, "created_at", encode_cursor(0, 0, [1], UUID)),
    "no number": (LabletSession, "priority", encode_cursor(0, 0, "high", UUID)),
    "an infinite number": (LabletSession, "priority", encode_cursor(0, 0, float("inf"), UUID)),
    "a huge number": (LabletSession, "priority", encode_cursor(0, 0, 10**30, UUID)),
    "a huge id": (ChangeLog, "at", encode_cursor(0, 0, "2026-03-02T09:00:00+00:00", 10**30)),
    "deep": (Domain, "name", base64.urlsafe_b64encode(b"[" * 3000).decode()),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "sort", "cursor"), BAD.values(), ids=BAD)
def test_an_invalid_cursor_is_rejected_by_name(model, sort, cursor):
    with pytest.raises(InvalidInput) as caught:
        page_of(model.objects.all(), sort=sort, size=5, cursor=cursor)
    assert list(caught.value.fields) == ["cursor"]


@in_a_test_database
@given(
    cursor=st.text(min_size=1)
    | st.binary(min_size=1).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
    | st.lists(st.integers() | st.text() | st.none() | st.booleans(), max_size=5).map(
        lambda each: encode_cursor(*each)
    ),
    sort=st.sampled_from(["name", "-created_at"]),
)
def test_random_cursors_are_rejected_or_return_a_page(db, cursor, sort):
    with suppress(InvalidInput):
        page_of(Domain.objects.all(), sort=sort, size=5, cursor=cursor)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rows", "cap", "counted"), [(0, 3, (0, False)), (3, 3, (3, False)), (4, 3, (3, True)), (9, 3, (3, True))]
)
def test_rows_are_counted_up_to_a_cap(rows, cap, counted):
    DomainFactory.create_batch(rows)
    assert capped_count(Domain.objects.all(), cap) == counted


@pytest.mark.django_db
def test_a_deep_page_needs_one_query_like_the_first(django_assert_num_queries):
    fill([1] * 25)
    pages = walk_forward("created_at", 5)
    with django_assert_num_queries(1):
        page_of(Domain.objects.all(), sort="created_at", size=5, cursor=pages[3].next)
