"""Observers: they look and record, and change no state of what they look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Generic, TypeVar
from uuid import UUID

from django.conf import settings

from lcm.lifecycle import SessionStatus
from lcm.models import Kernel
from lcm.models.sessions import KernelStatus

T = TypeVar("T")


@dataclass(frozen=True)
class ObserverResult:
    """How many targets went well and how many failed, and the last error."""

    success_count: int = 0
    failure_count: int = 0
    error: str = ""

    def __add__(self, other: ObserverResult) -> ObserverResult:
        return ObserverResult(
            self.success_count + other.success_count,
            self.failure_count + other.failure_count,
            other.error or self.error,
        )


class ObserverHandler(ABC, Generic[T]):
    """One thing to observe. Targets come one by one or in pages; each is executed by itself."""

    interval_setting: ClassVar[str]
    initial_delay: ClassVar[timedelta] = timedelta(seconds=5)
    # What is looked at; empty means all of them.
    target_statuses: ClassVar[Sequence[SessionStatus]] = ()
    target_kernel_statuses: ClassVar[Sequence[KernelStatus]] = ()

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=settings.CONFIG[self.interval_setting])

    @classmethod
    @abstractmethod
    def name(cls) -> str:
        """What it is called in the list, the schedule and the lease."""

    @abstractmethod
    def fetch_targets(self, now: datetime) -> Iterator[T]:
        """What there is to observe, paged by key, read while the run goes on."""

    @abstractmethod
    def execute(self, target: T, now: datetime) -> ObserverResult:
        """Observe one target and record it; an exception counts as one failure and stops nothing else."""

    def post_process(self, result: ObserverResult, now: datetime) -> None:
        """Called once when all targets are done."""
        return

    def lag(self, now: datetime) -> timedelta | None:
        """How far the records are behind what happened; None when they are not."""
        return None


class KernelObserver(ObserverHandler[list[UUID]]):
    """An observer of kernels: those of the target statuses, a page of ids at a time."""

    page_size: ClassVar[int] = 1_000

    def fetch_targets(self, now: datetime) -> Iterator[list[UUID]]:
        rows = Kernel.objects.order_by("pk")
        if self.target_statuses:
            rows = rows.filter(session__status__in=self.target_statuses)
        if self.target_kernel_statuses:
            rows = rows.filter(status__in=self.target_kernel_statuses)
        after: UUID | None = None
        while keys := list(
            (rows if after is None else rows.filter(pk__gt=after)).values_list("pk", flat=True)[
                : self.page_size
            ]
        ):
            yield keys
            after = keys[-1]
