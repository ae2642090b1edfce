"""Base class of lifecycle handlers: they report outcomes, and the coordinator writes the transitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.models.sessions import KernelStatus

MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class HandlerOutcome:
    """Outcome of a handler's run: reasons by session id.

    A session in neither was skipped, which does not count as an attempt.
    """

    successes: Mapping[UUID, str] = field(default_factory=dict)
    failures: Mapping[UUID, str] = field(default_factory=dict)


class SessionLifecycleHandler:
    """Handles sessions in some statuses."""

    interval_setting: ClassVar[str] = "LIFECYCLE_INTERVAL"
    initial_delay: ClassVar[timedelta] = timedelta(seconds=10)
    target_statuses: ClassVar[Sequence[SessionStatus]]
    # Only sessions with a kernel in one of these statuses; empty: no filter.
    target_kernel_statuses: ClassVar[Sequence[KernelStatus]] = ()
    # The next status of a session; None: it stays.
    success_status: ClassVar[SessionStatus | None] = None
    failure_status: ClassVar[SessionStatus | None] = None
    stale_status: ClassVar[SessionStatus | None] = None
    # Name of the setting with the time after which a session is stale.
    timeout_setting: ClassVar[str] = ""
    max_attempts: ClassVar[int] = MAX_ATTEMPTS

    @classmethod
    def name(cls) -> str:
        """Return the name in lists, the schedule and the lease: “end-running” for `EndRunning`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()

    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        """Return what happened to the sessions and write nothing; the coordinator handles stale sessions."""
        return HandlerOutcome()

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=settings.CONFIG[self.interval_setting])

    @property
    def timeout(self) -> timedelta | None:
        seconds = settings.CONFIG[self.timeout_setting] if self.timeout_setting else None
        return None if seconds is None else timedelta(seconds=seconds)

    def due(self, now: datetime) -> Q:
        """Return the sessions of the target statuses that are due; all by default."""
        return Q()

    def is_stale(self, session: LabletSession, now: datetime) -> bool:
        """Return whether the session has been in its status for longer than the timeout."""
        return self.timeout is not None and session.status_since <= now - self.timeout

    def stale_reason(self, session: LabletSession) -> str:
        assert self.timeout is not None
        minutes = self.timeout.total_seconds() / 60
        return f"{session.get_status_display().lower()} for more than {minutes:g} min"

    def sessions(self, now: datetime) -> QuerySet[LabletSession]:
        rows = LabletSession.objects.filter(self.due(now), status__in=self.target_statuses)
        if self.target_kernel_statuses:
            kernels = Q(kernels__status__in=self.target_kernel_statuses)
            rows = rows.filter(pk__in=LabletSession.objects.filter(kernels).values("pk"))
        return rows
