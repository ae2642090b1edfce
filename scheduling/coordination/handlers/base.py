"""Lifecycle handlers: they say what happened to sessions; the coordinator writes what follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
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
    """What happened to the sessions a handler was given: ids, and the reasons of those it is known of.

    A session that is in none of them was skipped: it burns no attempt.
    """

    successes: Mapping[UUID, str] = field(default_factory=dict)
    failures: Mapping[UUID, str] = field(default_factory=dict)
    skipped: frozenset[UUID] = frozenset()


class SessionLifecycleHandler(ABC):
    """Looks after sessions of some statuses."""

    interval_setting: ClassVar[str] = "LIFECYCLE_INTERVAL"
    initial_delay: ClassVar[timedelta] = timedelta(seconds=10)
    target_statuses: ClassVar[Sequence[SessionStatus]]
    # Only sessions with such a kernel; empty means no filter.
    target_kernel_statuses: ClassVar[Sequence[KernelStatus]] = ()
    # What a session becomes; none means it stays.
    success_status: ClassVar[SessionStatus | None] = None
    failure_status: ClassVar[SessionStatus | None] = None
    stale_status: ClassVar[SessionStatus | None] = None
    # The setting that says how long a session may stay before it is stale.
    timeout_setting: ClassVar[str] = ""
    max_attempts: ClassVar[int] = MAX_ATTEMPTS

    @classmethod
    @abstractmethod
    def name(cls) -> str:
        """What it is called in the list, the schedule and the lease."""

    @abstractmethod
    def execute(self, sessions: Sequence[LabletSession], now: datetime) -> HandlerOutcome:
        """Say what happened; nothing is written here."""

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=settings.CONFIG[self.interval_setting])

    @property
    def timeout(self) -> timedelta | None:
        seconds = settings.CONFIG[self.timeout_setting] if self.timeout_setting else None
        return None if seconds is None else timedelta(seconds=seconds)

    def due(self, now: datetime) -> Q:
        """Which sessions of the target statuses are worth looking at; all, unless a handler knows better."""
        return Q()

    def is_stale(self, session: LabletSession, now: datetime) -> bool:
        """Whether it has been in its status for longer than the timeout."""
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


def skip_all(sessions: Iterable[LabletSession]) -> HandlerOutcome:
    """Nothing happened: what is stale is the coordinator's to see."""
    return HandlerOutcome(skipped=frozenset(session.pk for session in sessions))
