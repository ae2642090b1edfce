"""Top users; large sums are computed by a Celery worker and cached."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from django.core.cache import cache
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from fairshare.selectors.usage import Period, TopSubjects, usage_by_subject
from lcm.domain.errors import Unavailable
from lcm.services.task_queue import enqueue_task

# Up to this many buckets are summed during a page request.
DIRECT_LIMIT = 50_000
# Older sums are recomputed on the next request and shown meanwhile.
FRESH = timedelta(minutes=10)
KEPT_SECONDS = 86_400
# Minimum interval between tasks: as long as a task may take, and at most as long as sums are fresh.
TASK_SECONDS = 600
SUBJECTS = 100
# Prefix of every key; increase the number when the format of cached values changes.
KEY_PREFIX = "usage-sums:2"


@dataclass(frozen=True)
class UsageQuery:
    """A query for the subjects of a level that used most of a resource in a period."""

    period: Period
    level: str
    resource: str

    @classmethod
    def from_arguments(cls, first: str, last: str, pool: str, level: str, resource: str) -> UsageQuery:
        """Return the query from the task's arguments."""
        return cls(Period(date.fromisoformat(first), date.fromisoformat(last), pool), level, resource)

    @property
    def arguments(self) -> tuple[str, str, str, str, str]:
        period = self.period
        return (period.first.isoformat(), period.last.isoformat(), period.pool, self.level, self.resource)

    @property
    def key(self) -> str:
        return ":".join([KEY_PREFIX, *self.arguments])

    @property
    def enqueued_key(self) -> str:
        """Return the cache key that marks a task as enqueued."""
        return f"{self.key}:enqueued"


@dataclass(frozen=True)
class UsageTotals:
    """Top users and the time of the sum; empty until the first task has finished."""

    found: TopSubjects | None
    at: datetime | None
    awaited: bool = False


def usage_totals(query: UsageQuery, *, now: datetime) -> UsageTotals:
    """Return the sum, computed now if small, else cached; enqueue a task if that is missing or old."""
    try:
        cached = cache.get_many([query.key, query.enqueued_key])
    except (RedisError, OSError) as error:
        if _is_quick(query):
            return UsageTotals(_sum(query), now)
        raise Unavailable(_("This sum needs a background worker, but the broker is unreachable.")) from error
    totals: UsageTotals | None = cached.get(query.key)
    if totals is not None and totals.at is not None and now - totals.at < FRESH:
        return totals
    is_enqueued = query.enqueued_key in cached
    if totals is None and not is_enqueued and _is_quick(query):
        return UsageTotals(_sum(query), now)
    if not is_enqueued and cache.add(query.enqueued_key, True, timeout=TASK_SECONDS):
        _enqueue(query)
    return replace(totals or UsageTotals(None, None), awaited=True)


def cache_totals(query: UsageQuery, *, now: datetime) -> bool:
    """Compute and cache a sum in a worker, one at a time; return False if another one is running."""
    if not cache.add(f"{KEY_PREFIX}:summing", True, timeout=TASK_SECONDS):
        return False
    try:
        cache.set(query.key, UsageTotals(_sum(query), now), timeout=KEPT_SECONDS)
    finally:
        cache.delete(f"{KEY_PREFIX}:summing")
    return True


def _is_quick(query: UsageQuery) -> bool:
    return query.period.buckets(query.level).order_by()[: DIRECT_LIMIT + 1].count() <= DIRECT_LIMIT


def _sum(query: UsageQuery) -> TopSubjects:
    return usage_by_subject(query.period, query.level, query.resource, SUBJECTS)


def _enqueue(query: UsageQuery) -> None:
    try:
        enqueue_task("fairshare.tasks.sum_usage", *query.arguments)
    except Unavailable:
        cache.delete(query.enqueued_key)
        raise
