"""Handler of stopping sessions whose end no controller reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler, skip_all


class FinishStopping(SessionLifecycleHandler):
    """Fail sessions that take too long to stop. Release their slots, and their ports once observed free."""

    target_statuses = (SessionStatus.STOPPING,)
    stale_status = SessionStatus.FAILED
    timeout_setting = "STOPPING_TIMEOUT"

    @classmethod
    def name(cls) -> str:
        return "finish-stopping"

    def due(self, now: datetime) -> Q:
        return Q(status_since__lte=now - (self.timeout or timedelta()))

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        return skip_all(sessions)

    def stale_reason(self, session: LabletSession) -> str:
        return f"{super().stale_reason(session)}: no controller reported its end"
