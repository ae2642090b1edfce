"""Events about sessions that wait longer than the wait target of their pool."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from lcm.domain.actors import SYSTEM
from lcm.models import ChangeLog, LabletSession
from lcm.services.changelog import build_entry, log_changes
from scheduling.models import Phase, Pool, Reservation
from scheduling.selectors.lead_time import QUEUED_SINCE

BATCH = 2_000


def announce_exceeded_targets(*, now: datetime) -> None:
    """Log each session that exceeds the wait target of its pool, once, also if it is requeued."""
    for pool in Pool.objects.only("name", "target_wait_seconds"):
        while _announce_batch(pool, now) == BATCH:
            pass


def sessions_beyond_target(pool: Pool, now: datetime) -> QuerySet[Any]:
    """Return the reservations to announce, longest wait first; `is_known` if an earlier one was announced."""
    since = now - timedelta(seconds=pool.target_wait_seconds)
    earlier = Reservation.objects.filter(session=OuterRef("session"), target_exceeded_at__isnull=False)
    waiting = Reservation.objects.filter(
        pool=pool, phase=Phase.PENDING, session__isnull=False, target_exceeded_at=None
    )
    late = waiting.alias(since=QUEUED_SINCE).filter(since__lt=since).order_by("since")
    found: QuerySet[Any] = late.annotate(is_known=Exists(earlier))
    return found


def _announce_batch(pool: Pool, now: datetime) -> int:
    with transaction.atomic():
        # A reservation that the tick places now is skipped; if it stays, the next run finds it.
        rows = list(sessions_beyond_target(pool, now).select_for_update(skip_locked=True)[:BATCH])
        if not rows:
            return 0
        Reservation.objects.filter(pk__in=[row.pk for row in rows]).update(target_exceeded_at=now)
        log_changes(_entry(row, pool, now) for row in rows if not row.is_known)
    return len(rows)


def _entry(row: Reservation, pool: Pool, now: datetime) -> ChangeLog:
    # The name of a session needs its id only.
    session = LabletSession(pk=row.session_id)
    since = row.joins_queue_at or row.created_at
    return build_entry(
        session,
        actor=SYSTEM,
        event="session.wait_target_exceeded",
        message=f"{session} has waited for longer than the wait target of {pool}",
        after={"waiting_since": since, "target_wait_seconds": pool.target_wait_seconds},
        now=now,
    )
