"""Usage sums that are too large for a page request are computed by a worker for all users."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis.exceptions import ConnectionError as RedisAway

from fairshare.services import usage_totals
from fairshare.tasks import sum_usage
from lcm.services import task_queue
from tests.fairshare.pages.test_pages import text_of
from tests.support.fairshare_setup import FairShareStage

PEOPLE = "/usage/?level=user"
SUMMING = "Calculating"


@pytest.fixture
def used(stage: FairShareStage, time_machine) -> FairShareStage:
    """Ann used three times as much as cyd, up to now."""
    for person, project in (("ann", "ccna"), ("ann", "ccna"), ("ann", "ccna"), ("cyd", "soc")):
        stage.start(person, project)
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate")
    time_machine.move_to(stage.clock(), tick=False)
    return stage


@pytest.fixture
def large_usage(used, monkeypatch) -> FairShareStage:
    """Two people exceed the limit of a direct sum."""
    monkeypatch.setattr(usage_totals, "DIRECT_LIMIT", 1)
    return used


@pytest.fixture
def enqueued(monkeypatch) -> list[tuple[str, ...]]:
    """The enqueued tasks."""
    sent: list[tuple[str, ...]] = []
    monkeypatch.setattr(task_queue.current_app, "send_task", lambda _, args, **__: sent.append(args))
    return sent


@pytest.fixture
def open_page(client, viewer):
    client.force_login(viewer)
    return lambda address=PEOPLE, **headers: client.get(address, headers=headers)


def test_a_small_sum_is_computed_in_the_request(used, enqueued, open_page, monkeypatch):
    monkeypatch.setattr(usage_totals, "DIRECT_LIMIT", 2)
    assert "academy / ccna / ann used most: 24 core-hours" in text_of(open_page())
    assert enqueued == []


def test_a_large_sum_is_enqueued_once_and_shown_to_all_users(large_usage, enqueued, open_page):
    assert SUMMING in text_of(open_page())
    assert SUMMING in text_of(open_page())
    assert enqueued == [("2026-02-01", "2026-03-02", "", "user", "cpu_cores")]
    sum_usage(*enqueued[0])
    text = text_of(open_page())
    assert "academy / ccna / ann used most: 24 core-hours, 75 % of all" in text
    assert SUMMING not in text
    assert len(enqueued) == 1


@pytest.mark.parametrize(
    "other", ["resource=gpu", "pool=cml-eu", "first=2026-03-01", "last=2026-03-03&first=2026-02-03"]
)
def test_another_query_has_its_own_sum(other, large_usage, enqueued, open_page):
    open_page()
    sum_usage(*enqueued[0])
    assert SUMMING in text_of(open_page(f"{PEOPLE}&{other}"))
    assert len(set(enqueued)) == 2


def test_old_sums_are_shown_while_new_ones_are_computed(large_usage, enqueued, open_page, time_machine):
    open_page()
    sum_usage(*enqueued[0])
    time_machine.move_to(large_usage.clock() + usage_totals.FRESH - timedelta(seconds=1), tick=False)
    assert "recalculation enqueued" not in text_of(open_page())
    large_usage.clock.advance(hours=3)
    large_usage.run("record", "aggregate")
    time_machine.move_to(large_usage.clock(), tick=False)
    text = text_of(open_page())
    assert "ann used most: 24 core-hours" in text
    assert "calculated 3 h ago , recalculation enqueued" in text
    assert enqueued == [enqueued[0]] * 2
    sum_usage(*enqueued[1])
    text = text_of(open_page())
    assert "ann used most: 60 core-hours" in text
    assert "recalculation enqueued" not in text


def test_an_unfinished_task_is_enqueued_again_later(large_usage, enqueued, open_page, time_machine):
    open_page()
    time_machine.shift(usage_totals.TASK_SECONDS - 1)
    open_page()
    assert len(enqueued) == 1
    time_machine.shift(2)
    open_page()
    assert len(enqueued) == 2


def test_the_page_polls_until_the_sum_is_available(large_usage, enqueued, open_page):
    waiting = open_page(**{"HX-Request": "true"}).content.decode()
    assert 'hx-trigger="every 2s"' in waiting
    assert "/usage/?level=user" in waiting
    assert "<html" not in waiting
    sum_usage(*enqueued[0])
    finished = open_page(**{"HX-Request": "true"}).content.decode()
    assert "hx-trigger" not in finished
    assert 'id="usage-lead" hx-swap-oob="true"' in finished


def test_the_page_reports_a_missing_broker_and_enqueues_once_it_is_back(large_usage, open_page, monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    sent: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(task_queue.current_app, "send_task", refuse)
        assert "The broker cannot be reached" in text_of(open_page())
    monkeypatch.setattr(task_queue.current_app, "send_task", lambda name, **_: sent.append(name))
    assert SUMMING in text_of(open_page())
    assert sent == ["fairshare.tasks.sum_usage"]


def test_without_a_cache_the_page_shows_an_error(large_usage, enqueued, open_page, monkeypatch):
    def fail(*arguments, **fields):
        raise RedisAway("gone")

    monkeypatch.setattr(cache, "get_many", fail)
    text = text_of(open_page())
    assert "needs a background worker, but the broker is unreachable" in text
    assert "Export" not in text
    monkeypatch.setattr(usage_totals, "DIRECT_LIMIT", 2)
    assert "ann used most: 24 core-hours" in text_of(open_page())
    assert enqueued == []


def test_sums_are_computed_one_at_a_time(large_usage, enqueued, open_page, monkeypatch):
    open_page()
    query, at = usage_totals.UsageQuery.from_arguments(*enqueued[0]), large_usage.clock()
    inside = []

    def slowly(*arguments):
        inside.append(usage_totals.cache_totals(query, now=at))
        return sums(*arguments)

    sums = usage_totals.usage_by_subject
    monkeypatch.setattr(usage_totals, "usage_by_subject", slowly)
    assert usage_totals.cache_totals(query, now=at) is True
    assert inside == [False]
    monkeypatch.setattr(usage_totals, "usage_by_subject", sums)
    assert usage_totals.cache_totals(query, now=at) is True


def test_a_failed_sum_does_not_block_others(large_usage, enqueued, open_page, monkeypatch):
    open_page()
    query = usage_totals.UsageQuery.from_arguments(*enqueued[0])
    with monkeypatch.context() as broken:
        broken.setattr(usage_totals, "usage_by_subject", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            usage_totals.cache_totals(query, now=large_usage.clock())
    assert usage_totals.cache_totals(query, now=large_usage.clock()) is True


def test_an_enqueued_query_counts_no_buckets_again(large_usage, enqueued, open_page, monkeypatch):
    open_page()
    monkeypatch.setattr(usage_totals, "_is_quick", None)
    assert SUMMING in text_of(open_page())


def test_neither_pending_nor_cached_sums_use_more_queries(large_usage, enqueued, open_page):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            open_page()
        return len(captured)

    assert queries() <= 12
    sum_usage(*enqueued[0])
    assert queries() <= 12
