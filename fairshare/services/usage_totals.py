"""Who used most; where so many did that a page should not wait, a worker sums it for all who look."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.core.cache import cache
from redis.exceptions import RedisError

from fairshare.selectors.usage import Period, TopSubjects, usage_by_subject
from lcm.domain.errors import Unavailable
from lcm.services.task_queue import enqueue_task

# So many buckets are summed while a page waits.
DIRECT_LIMIT = 50_000
# Sums that are older are made anew once somebody looks; they are shown meanwhile.
FRESH = timedelta(minutes=10)
KEPT_SECONDS = 86_400
# A worker is not asked again sooner: as long as a task may take, and no longer than sums are fresh.
PATIENCE_SECONDS = 600
SUBJECTS = 100
# Beginning of every key; another number when what is kept changes its form.
KEY_PREFIX = "usage-sums:1"


@dataclass(frozen=True)
class UsageQuery:
    """Who of a level used most of a resource in some days."""

    period: Period
    level: str
    resource: str

    @classmethod
    def of(cls, first: str, last: str, pool: str, level: str, resource: str) -> UsageQuery:
        """As it was sent to a worker."""
        return cls(Period(date.fromisoformat(first), date.fromisoformat(last), pool), level, resource)

    @property
    def words(self) -> tuple[str, str, str, str, str]:
        period = self.period
        return (period.first.isoformat(), period.last.isoformat(), period.pool, self.level, self.resource)

    @property
    def key(self) -> str:
        return ":".join([KEY_PREFIX, *self.words])

    @property
    def mark(self) -> str:
        """Under which it is noted that a worker was asked."""
        return f"{self.key}:asked"


@dataclass(frozen=True)
class UsageTotals:
    """Who used most as of when; nobody yet while a worker sums for the first time."""

    found: TopSubjects | None
    at: datetime | None
    awaited: bool = False


def usage_totals(asked: UsageQuery, *, now: datetime) -> UsageTotals:
    """Summed now where that is quick; else what is kept. A worker is asked when that is missing or old."""
    try:
        found = cache.get_many([asked.key, asked.mark])
    except (RedisError, OSError) as error:
        if _is_quick(asked):
            return UsageTotals(_sum(asked), now)
        raise Unavailable("So much usage is summed by a worker, and the broker cannot be reached.") from error
    kept: UsageTotals | None = found.get(asked.key)
    if kept is not None and kept.at is not None and now - kept.at < FRESH:
        return kept
    is_asked = asked.mark in found
    if kept is None and not is_asked and _is_quick(asked):
        return UsageTotals(_sum(asked), now)
    if not is_asked and cache.add(asked.mark, True, timeout=PATIENCE_SECONDS):
        _ask(asked)
    return UsageTotals(kept.found, kept.at, awaited=True) if kept else UsageTotals(None, None, awaited=True)


def cache_totals(asked: UsageQuery, *, now: datetime) -> bool:
    """What a worker does when it is asked, one at a time. False: it is not its turn yet."""
    if not cache.add(f"{KEY_PREFIX}:summing", True, timeout=PATIENCE_SECONDS):
        return False
    try:
        cache.set(asked.key, UsageTotals(_sum(asked), now), timeout=KEPT_SECONDS)
    finally:
        cache.delete(f"{KEY_PREFIX}:summing")
    return True


def _is_quick(asked: UsageQuery) -> bool:
    return asked.period.buckets(asked.level).order_by()[: DIRECT_LIMIT + 1].count() <= DIRECT_LIMIT


def _sum(asked: UsageQuery) -> TopSubjects:
    return usage_by_subject(asked.period, asked.level, asked.resource, SUBJECTS)


def _ask(asked: UsageQuery) -> None:
    try:
        enqueue_task("fairshare.tasks.sum_usage", *asked.words)
    except Unavailable:
        cache.delete(asked.mark)
        raise
