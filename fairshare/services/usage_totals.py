"""Who used most; where so many did that a page should not wait, a worker sums it for all who look."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.core.cache import cache
from redis.exceptions import RedisError

from fairshare.selectors.usage import BySubject, Period, usage_by_subject
from lcm.domain.errors import Unavailable
from lcm.services.task_queue import ask_worker

# So many buckets are summed while a page waits.
AT_ONCE = 50_000
# Sums that are older are made anew once somebody looks; they are shown meanwhile.
FRESH = timedelta(minutes=10)
KEPT_SECONDS = 86_400
# A worker is not asked again sooner: as long as a task may take, and no longer than sums are fresh.
PATIENCE_SECONDS = 600
SUBJECTS = 100
# Beginning of every key; another number when what is kept changes its form.
FORM = "usage-sums:1"


@dataclass(frozen=True)
class Question:
    """Who of a level used most of a resource in some days."""

    period: Period
    level: str
    resource: str

    @classmethod
    def of(cls, first: str, last: str, pool: str, level: str, resource: str) -> Question:
        """As it was sent to a worker."""
        return cls(Period(date.fromisoformat(first), date.fromisoformat(last), pool), level, resource)

    @property
    def words(self) -> tuple[str, str, str, str, str]:
        period = self.period
        return (period.first.isoformat(), period.last.isoformat(), period.pool, self.level, self.resource)

    @property
    def key(self) -> str:
        return ":".join([FORM, *self.words])

    @property
    def mark(self) -> str:
        """Under which it is noted that a worker was asked."""
        return f"{self.key}:asked"


@dataclass(frozen=True)
class Answer:
    """Who used most as of when; nobody yet while a worker sums for the first time."""

    found: BySubject | None
    at: datetime | None
    awaited: bool = False


def who_used_most(asked: Question, *, now: datetime) -> Answer:
    """Summed now where that is quick; else what is kept. A worker is asked when that is missing or old."""
    try:
        found = cache.get_many([asked.key, asked.mark])
    except (RedisError, OSError) as error:
        if _is_quick(asked):
            return Answer(_sum(asked), now)
        raise Unavailable("So much usage is summed by a worker, and the broker cannot be reached.") from error
    kept: Answer | None = found.get(asked.key)
    if kept is not None and kept.at is not None and now - kept.at < FRESH:
        return kept
    is_asked = asked.mark in found
    if kept is None and not is_asked and _is_quick(asked):
        return Answer(_sum(asked), now)
    if not is_asked and cache.add(asked.mark, True, timeout=PATIENCE_SECONDS):
        _ask(asked)
    return Answer(kept.found, kept.at, awaited=True) if kept else Answer(None, None, awaited=True)


def keep_sums(asked: Question, *, now: datetime) -> bool:
    """What a worker does when it is asked, one at a time. False: it is not its turn yet."""
    if not cache.add(f"{FORM}:summing", True, timeout=PATIENCE_SECONDS):
        return False
    try:
        cache.set(asked.key, Answer(_sum(asked), now), timeout=KEPT_SECONDS)
    finally:
        cache.delete(f"{FORM}:summing")
    return True


def _is_quick(asked: Question) -> bool:
    return asked.period.buckets(asked.level).order_by()[: AT_ONCE + 1].count() <= AT_ONCE


def _sum(asked: Question) -> BySubject:
    return usage_by_subject(asked.period, asked.level, asked.resource, SUBJECTS)


def _ask(asked: Question) -> None:
    try:
        ask_worker("fairshare.tasks.sum_usage", *asked.words)
    except Unavailable:
        cache.delete(asked.mark)
        raise
