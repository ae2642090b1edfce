"""Handler of sessions that were not placed in time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler


class ExpirePending(SessionLifecycleHandler):
    """Expire sessions not placed within the grace period after their start, or before their end.

    For a requeued session the grace period starts again.
    """

    target_statuses = (SessionStatus.PENDING,)
    success_status = SessionStatus.EXPIRED

    @classmethod
    def name(cls) -> str:
        return "expire-pending"

    def due(self, now: datetime) -> Q:
        latest = now - timedelta(seconds=settings.CONFIG["PENDING_GRACE"])
        return Q(ends_at__lte=now) | Q(starts_at__lte=latest, status_since__lte=latest)

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        return HandlerOutcome(successes={session.pk: _why(session, now) for session in sessions})


def _why(session: LabletSession, now: datetime) -> str:
    if session.ends_at <= now:
        return "its timeslot ended before it was placed"
    return "it was not placed within the grace period after its start"
