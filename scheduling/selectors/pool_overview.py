"""Overview of all pools, in two queries whatever their size."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from scheduling.models import Slot, SlotState, TickRun
from scheduling.selectors.pools import pools_with_queue


@dataclass
class PoolOverview:
    """A pool with its slots by state, and how many of them need attention."""

    pool: Any
    by_state: dict[str, int] = field(default_factory=dict)
    # On READY slots.
    leases: int = 0
    lease_limit: int = 0
    overdue: int = 0
    silent: int = 0
    error_since: datetime | None = None
    overdue_since: datetime | None = None
    silent_since: datetime | None = None

    @property
    def in_error(self) -> int:
        return self.by_state.get(SlotState.ERROR, 0)

    def exceeds_target_wait(self, now: datetime) -> bool:
        """Return whether a session waits longer than the pool's wait target."""
        target = timedelta(seconds=self.pool.target_wait_seconds)
        return self.pool.oldest_waiting_since is not None and now - self.pool.oldest_waiting_since > target


def pool_overviews(now: datetime) -> list[PoolOverview]:
    """Return every pool, by name."""
    lines: dict[UUID, PoolOverview] = {pool.pk: PoolOverview(pool) for pool in _pools(now)}
    for row in _slots(now):
        line = lines.get(row["pool_id"])
        if line is None:
            continue
        line.by_state[row["state"]] = row["slots"]
        line.overdue += row["overdue"]
        line.silent += row["silent"]
        line.overdue_since = _earlier(line.overdue_since, row["overdue_since"])
        line.silent_since = _earlier(line.silent_since, row["silent_since"])
        if row["state"] == SlotState.READY:
            line.leases, line.lease_limit = row["held"], row["most"]
        if row["state"] == SlotState.ERROR:
            line.error_since = row["since"]
    return list(lines.values())


def is_overdue(now: datetime) -> Q:
    """Filter slots past the deadline of their state; a draining slot may wait for its leases."""
    waits_for_leases = Q(state=SlotState.DRAINING, lease_count__gt=0)
    return Q(state_deadline__lt=now) & ~Q(state=SlotState.ERROR) & ~waits_for_leases


def is_silent(now: datetime) -> Q:
    """Filter READY slots without a recent heartbeat."""
    limit = now - silence_limit()
    never = Q(last_heartbeat=None, last_state_change__lt=limit)
    return Q(state=SlotState.READY) & (Q(last_heartbeat__lt=limit) | never)


def silence_limit() -> timedelta:
    """Return the time without heartbeat after which a slot is silent."""
    return timedelta(seconds=settings.CONFIG["HEARTBEAT_TIMEOUT"])


def _pools(now: datetime) -> QuerySet[Any]:
    """Return pools with their state, their queue and the duration of the last tick."""
    last = TickRun.objects.filter(pool=OuterRef("pk")).order_by("-started_at")
    found: QuerySet[Any] = pools_with_queue(now).annotate(tick_ms=Subquery(last.values("duration_ms")[:1]))
    return found


def _slots(now: datetime) -> QuerySet[Slot, dict[str, Any]]:
    overdue, silent = is_overdue(now), is_silent(now)
    rows: Any = Slot.objects.order_by().values("pool_id", "state")
    found: QuerySet[Slot, dict[str, Any]] = rows.annotate(
        slots=Count("*"),
        held=Sum("lease_count"),
        most=Sum("max_leases"),
        since=Min("last_state_change"),
        overdue=Count("pk", filter=overdue),
        overdue_since=Min("state_deadline", filter=overdue),
        silent=Count("pk", filter=silent),
        silent_since=Min(Coalesce("last_heartbeat", "last_state_change"), filter=silent),
    )
    return found


def _earlier(first: datetime | None, second: datetime | None) -> datetime | None:
    return min((each for each in (first, second) if each), default=None)
