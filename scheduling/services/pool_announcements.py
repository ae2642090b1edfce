"""Events about conditions of a pool that begin and end: it backs off, or it is at its maximum.

The row of the pool records that the start was announced. So each start and end is logged once, and a
condition that comes and goes is logged at most twice in `SETTLED`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from lcm.domain.actors import SYSTEM
from lcm.domain.storable_text import remove_unstorable
from lcm.services.changelog import log_change
from lcm.web.wording import count_text
from scheduling.models import Pool

# The end of a condition is announced this long after its start at the earliest.
SETTLED = timedelta(minutes=15)


def announce_backoff(pool: Pool, *, until: datetime, reason: str, now: datetime) -> None:
    """Log that a pool backs off, unless that was logged before."""
    message = f"pool {pool} backs off until {until.astimezone(UTC):%H:%M:%S} UTC"
    _begin(
        pool,
        "backoff_announced_at",
        event="pool.backed_off",
        message=message,
        reason=remove_unstorable(reason),
        after={"backoff_until": until},
        now=now,
    )


def announce_launches_resumed(*, now: datetime) -> None:
    """Log the pools that launched successfully after a back-off, or that were not refused for a while."""
    over = Q(backoff_until=None) | Q(backoff_until__lte=now - SETTLED)
    pools = Pool.objects.filter(
        over, enabled=True, stopped_reason="", failures=0, backoff_announced_at__lte=now - SETTLED
    )
    for pool in pools:
        message = f"pool {pool} no longer backs off"
        _end(pool, "backoff_announced_at", event="pool.launches_resumed", message=message, now=now)


def announce_maximum(pool: Pool, *, waiting: int, now: datetime) -> None:
    """Log that sessions wait while all slots of a pool are in use, unless that was logged before."""
    slots, sessions = count_text(pool.max_slots, "slot"), count_text(waiting, "session")
    message = f"pool {pool} is at its maximum of {slots}; {sessions} waiting"
    after = {"max_slots": pool.max_slots, "waiting": waiting}
    _begin(pool, "maximum_announced_at", event="pool.at_maximum", message=message, after=after, now=now)


def end_maximum(pool: Pool, *, now: datetime) -> None:
    """Log that a pool can serve its sessions again, if the loaded row says that its maximum was announced."""
    since = pool.maximum_announced_at
    if since is not None and since <= now - SETTLED:
        message = f"pool {pool} is no longer at its maximum"
        _end(pool, "maximum_announced_at", event="pool.below_maximum", message=message, now=now)


def _begin(pool: Pool, column: str, *, now: datetime, **change: Any) -> None:
    with transaction.atomic():
        if Pool.objects.filter(pk=pool.pk, **{column: None}).update(**{column: now}):
            log_change(pool, actor=SYSTEM, now=now, **change)
    setattr(pool, column, now)


def _end(pool: Pool, column: str, *, now: datetime, **change: Any) -> None:
    announced = Pool.objects.filter(pk=pool.pk, **{column: getattr(pool, column)})
    with transaction.atomic():
        if announced.update(**{column: None}):
            log_change(pool, actor=SYSTEM, now=now, **change)
    setattr(pool, column, None)
