"""Handler of placed sessions that no controller starts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler, skip_all


class RequeueScheduled(SessionLifecycleHandler):
    """Requeue placed sessions that are not started in time; after the last attempt they are cancelled."""

    target_statuses = (SessionStatus.SCHEDULED,)
    stale_status = SessionStatus.PENDING
    timeout_setting = "SCHEDULED_TIMEOUT"

    @classmethod
    def name(cls) -> str:
        return "requeue-scheduled"

    def due(self, now: datetime) -> Q:
        latest = now - (self.timeout or timedelta())
        return Q(status_since__lte=latest, starts_at__lte=latest)

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        return skip_all(sessions)

    def is_stale(self, session: LabletSession, now: datetime) -> bool:
        """Return whether it is stale; before its timeslot no controller has to start it."""
        assert self.timeout is not None
        return max(session.status_since, session.starts_at) <= now - self.timeout

    def stale_reason(self, session: LabletSession) -> str:
        return f"{super().stale_reason(session)}: no controller started it"
