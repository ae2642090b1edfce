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
from tests.support.fairshare_setup import Stage

PEOPLE = "/usage/?level=user"
SUMMING = "Calculating"


@pytest.fixture
def used(stage: Stage, time_machine) -> Stage:
    """Ann used three times as much as cyd, up to now."""
    for who, project in (("ann", "ccna"), ("ann", "ccna"), ("ann", "ccna"), ("cyd", "soc")):
        stage.start(who, project)
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate")
    time_machine.move_to(stage.clock(), tick=False)
    return stage


@pytest.fixture
def too_much(used, monkeypatch) -> Stage:
    """Two people exceed the limit of a direct sum."""
    monkeypatch.setattr(usage_totals, "DIRECT_LIMIT", 1)
    return used


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, ...]]:
    """The enqueued tasks."""
    sent: list[tuple[str, ...]] = []
    monkeypatch.setattr(task_queue.current_app, "send_task", lambda _, args, **__: sent.append(args))
    return sent


@pytest.fixture
def look(client, viewer):
    client.force_login(viewer)
    return lambda address=PEOPLE, **headers: client.get(address, headers=headers)


def test_what_is_summed_quickly_is_summed_at_once(used, asked, look, monkeypatch):
    monkeypatch.setattr(usage_totals, "DIRECT_LIMIT", 2)
    assert "academy / ccna / ann used most: 24 core-hours" in text_of(look())
    assert asked == []


def test_a_worker_is_asked_once_and_everybody_is_shown_what_it_summed(too_much, asked, look):
    assert SUMMING in text_of(look())
    assert SUMMING in text_of(look())
    assert asked == [("2026-02-03", "2026-03-02", "", "user", "cpu_cores")]
    sum_usage(*asked[0])
    text = text_of(look())
    assert "academy / ccna / ann used most: 24 core-hours, 75 % of all" in text
    assert SUMMING not in text
    assert len(asked) == 1


@pytest.mark.parametrize(
    "other", ["resource=gpu", "pool=cml-eu", "first=2026-03-01", "last=2026-03-03&first=2026-02-03"]
)
def test_another_question_has_an_answer_of_its_own(other, too_much, asked, look):
    look()
    sum_usage(*asked[0])
    assert SUMMING in text_of(look(f"{PEOPLE}&{other}"))
    assert len(set(asked)) == 2


def test_old_sums_are_shown_while_they_are_made_anew(too_much, asked, look, time_machine):
    look()
    sum_usage(*asked[0])
    time_machine.move_to(too_much.clock() + usage_totals.FRESH - timedelta(seconds=1), tick=False)
    assert "recalculation enqueued" not in text_of(look())
    too_much.clock.advance(hours=3)
    too_much.run("record", "aggregate")
    time_machine.move_to(too_much.clock(), tick=False)
    text = text_of(look())
    assert "ann used most: 24 core-hours" in text
    assert "calculated 3 h ago , recalculation enqueued" in text
    assert asked == [asked[0]] * 2
    sum_usage(*asked[1])
    text = text_of(look())
    assert "ann used most: 60 core-hours" in text
    assert "recalculation enqueued" not in text


def test_a_worker_that_does_not_answer_is_asked_again_later(too_much, asked, look, time_machine):
    look()
    time_machine.shift(usage_totals.TASK_SECONDS - 1)
    look()
    assert len(asked) == 1
    time_machine.shift(2)
    look()
    assert len(asked) == 2


def test_the_page_looks_again_by_itself_until_it_is_there(too_much, asked, look):
    waiting = look(**{"HX-Request": "true"}).content.decode()
    assert 'hx-trigger="every 2s"' in waiting
    assert "/usage/?level=user" in waiting
    assert "<html" not in waiting
    sum_usage(*asked[0])
    there = look(**{"HX-Request": "true"}).content.decode()
    assert "hx-trigger" not in there
    assert 'id="usage-lead" hx-swap-oob="true"' in there


def test_without_a_broker_the_page_says_so_and_asks_once_it_is_back(too_much, look, monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    sent: list[str] = []
    with monkeypatch.context() as away:
        away.setattr(task_queue.current_app, "send_task", refuse)
        assert "The broker cannot be reached" in text_of(look())
    monkeypatch.setattr(task_queue.current_app, "send_task", lambda name, **_: sent.append(name))
    assert SUMMING in text_of(look())
    assert sent == ["fairshare.tasks.sum_usage"]


def test_without_a_cache_the_page_says_so(too_much, asked, look, monkeypatch):
    def away(*arguments, **fields):
        raise RedisAway("gone")

    monkeypatch.setattr(cache, "get_many", away)
    text = text_of(look())
    assert "needs a background worker, but the broker is unreachable" in text
    assert "Export" not in text
    monkeypatch.setattr(usage_totals, "DIRECT_LIMIT", 2)
    assert "ann used most: 24 core-hours" in text_of(look())
    assert asked == []


def test_sums_are_made_one_at_a_time(too_much, asked, look, monkeypatch):
    look()
    question, at = usage_totals.UsageQuery.from_arguments(*asked[0]), too_much.clock()
    inside = []

    def slowly(*arguments):
        inside.append(usage_totals.cache_totals(question, now=at))
        return sums(*arguments)

    sums = usage_totals.usage_by_subject
    monkeypatch.setattr(usage_totals, "usage_by_subject", slowly)
    assert usage_totals.cache_totals(question, now=at) is True
    assert inside == [False]
    monkeypatch.setattr(usage_totals, "usage_by_subject", sums)
    assert usage_totals.cache_totals(question, now=at) is True


def test_a_sum_that_fails_does_not_keep_others_back(too_much, asked, look, monkeypatch):
    look()
    question = usage_totals.UsageQuery.from_arguments(*asked[0])
    with monkeypatch.context() as broken:
        broken.setattr(usage_totals, "usage_by_subject", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            usage_totals.cache_totals(question, now=too_much.clock())
    assert usage_totals.cache_totals(question, now=too_much.clock()) is True


def test_a_question_that_was_asked_counts_nothing_while_it_waits(too_much, asked, look, monkeypatch):
    look()
    monkeypatch.setattr(usage_totals, "_is_quick", None)
    assert SUMMING in text_of(look())


def test_neither_waiting_nor_kept_sums_take_more_queries(too_much, asked, look):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            look()
        return len(captured)

    assert queries() <= 12
    sum_usage(*asked[0])
    assert queries() <= 12
