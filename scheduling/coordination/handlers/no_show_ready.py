"""Handler of ready labs whose user does not arrive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler


class NoShowReady(SessionLifecycleHandler):
    """Stop sessions whose lab is ready and whose user does not arrive in time."""

    target_statuses = (SessionStatus.READY,)
    success_status = SessionStatus.STOPPING

    @classmethod
    def name(cls) -> str:
        return "no-show-ready"

    def due(self, now: datetime) -> Q:
        latest = now - timedelta(seconds=settings.CONFIG["NO_SHOW_AFTER"])
        return Q(ends_at__lte=now) | Q(starts_at__lte=latest, status_since__lte=latest)

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        minutes = settings.CONFIG["NO_SHOW_AFTER"] / 60
        reason = f"the user did not arrive within {minutes:g} min or before the timeslot ended"
        return HandlerOutcome(successes={session.pk: reason for session in sessions})
