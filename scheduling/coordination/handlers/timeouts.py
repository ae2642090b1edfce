"""Handlers of sessions that no controller moves on in time."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.coordination.handlers.base import SessionLifecycleHandler


class TimeoutHandler(SessionLifecycleHandler):
    """Base class: a session is due when it is stale."""

    def due(self, now: datetime) -> Q:
        return Q(status_since__lte=now - (self.timeout or timedelta()))


class RequeueScheduled(TimeoutHandler):
    """Requeue placed sessions that are not started in time; after the last attempt they are cancelled."""

    target_statuses = (SessionStatus.SCHEDULED,)
    stale_status = SessionStatus.PENDING
    timeout_setting = "SCHEDULED_TIMEOUT"

    def due(self, now: datetime) -> Q:
        """Return the stale sessions; before its timeslot no controller has to start a session."""
        return super().due(now) & Q(starts_at__lte=now - (self.timeout or timedelta()))

    def is_stale(self, session: LabletSession, now: datetime) -> bool:
        assert self.timeout is not None
        return max(session.status_since, session.starts_at) <= now - self.timeout

    def stale_reason(self, session: LabletSession) -> str:
        return f"{super().stale_reason(session)}: no controller started it"


class RequeueInstantiating(TimeoutHandler):
    """Requeue sessions whose lab does not start in time; after the last attempt they fail."""

    target_statuses = (SessionStatus.INSTANTIATING,)
    stale_status = SessionStatus.PENDING
    timeout_setting = "INSTANTIATING_TIMEOUT"


class FinishStopping(TimeoutHandler):
    """Fail sessions that take too long to stop. Release their slots, and their ports once observed free."""

    target_statuses = (SessionStatus.STOPPING,)
    stale_status = SessionStatus.FAILED
    timeout_setting = "STOPPING_TIMEOUT"

    def stale_reason(self, session: LabletSession) -> str:
        return f"{super().stale_reason(session)}: no controller reported its end"
