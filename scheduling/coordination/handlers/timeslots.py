"""Handlers of sessions whose timeslot is over, or began without them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler


def _late(now: datetime, setting: str) -> Q:
    """Filter sessions whose timeslot is over, or began this long ago without a change of status since."""
    latest = now - timedelta(seconds=settings.CONFIG[setting])
    return Q(ends_at__lte=now) | Q(starts_at__lte=latest, status_since__lte=latest)


class ExpirePending(SessionLifecycleHandler):
    """Expire sessions not placed within the grace period after their start, or before their end.

    For a requeued session the grace period starts again.
    """

    target_statuses = (SessionStatus.PENDING,)
    success_status = SessionStatus.EXPIRED

    def due(self, now: datetime) -> Q:
        return _late(now, "PENDING_GRACE")

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        ended = "its timeslot ended before it was placed"
        late = "it was not placed within the grace period after its start"
        return HandlerOutcome(
            successes={session.pk: ended if session.ends_at <= now else late for session in sessions}
        )


class NoShowReady(SessionLifecycleHandler):
    """Stop sessions whose lab is ready and whose user does not arrive in time."""

    target_statuses = (SessionStatus.READY,)
    success_status = SessionStatus.STOPPING

    def due(self, now: datetime) -> Q:
        return _late(now, "NO_SHOW_AFTER")

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        minutes = settings.CONFIG["NO_SHOW_AFTER"] / 60
        reason = f"the user did not arrive within {minutes:g} min or before the timeslot ended"
        return HandlerOutcome(successes={session.pk: reason for session in sessions})


class EndRunning(SessionLifecycleHandler):
    """Stop sessions that are still running or collecting after their timeslot and the grace period."""

    target_statuses = (SessionStatus.RUNNING, SessionStatus.COLLECTING)
    success_status = SessionStatus.STOPPING

    def due(self, now: datetime) -> Q:
        return Q(ends_at__lte=now - timedelta(seconds=settings.CONFIG["END_GRACE"]))

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        reason = "its timeslot is over and no controller ended it"
        return HandlerOutcome(successes={session.pk: reason for session in sessions})
