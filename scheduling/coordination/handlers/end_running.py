"""Handler of sessions that run past their timeslot because no controller ended them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler


class EndRunning(SessionLifecycleHandler):
    """Stop sessions that are still running or collecting after their timeslot and the grace period."""

    target_statuses = (SessionStatus.RUNNING, SessionStatus.COLLECTING)
    success_status = SessionStatus.STOPPING

    @classmethod
    def name(cls) -> str:
        return "end-running"

    def due(self, now: datetime) -> Q:
        return Q(ends_at__lte=now - timedelta(seconds=settings.CONFIG["END_GRACE"]))

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        reason = "its timeslot is over and no controller ended it"
        return HandlerOutcome(successes={session.pk: reason for session in sessions})
