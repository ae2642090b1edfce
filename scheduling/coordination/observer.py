"""Observers: they read and record, and change no state of their targets.

The shape is that of Backend.AI's `ObserverHandler`, so that an observer written for it works here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from inspect import isawaitable, signature
from typing import Any, ClassVar, Generic, Self, TypeVar

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db.models import Model, QuerySet

from lcm.domain.lifecycle import SessionStatus
from lcm.models import Kernel
from lcm.models.sessions import KernelStatus

T = TypeVar("T")
AnyRow = TypeVar("AnyRow", bound=Model)

DEFAULT_INTERVAL = timedelta(minutes=5)
KERNELS_READ = 1_000
NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")


@dataclass
class ObserverResult:
    """The number of targets observed and failed, and the last error."""

    success_count: int = 0
    failure_count: int = 0
    error: str = ""

    def __add__(self, other: Self) -> Self:
        counts = [each.name for each in fields(self) if each.name != "error"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in counts}
        return replace(self, **sums, error=other.error or self.error)


class ObserverHandler(ABC, Generic[T]):
    """A periodic observation.

    A method with a parameter `now` gets the time of the run. Every method may be plain or `async def`.
    """

    # The setting with the interval, for observers of LCM itself.
    interval_setting: ClassVar[str] = ""
    initial_delay: ClassVar[timedelta | None] = timedelta(seconds=5)
    # The most targets of one call of `execute`.
    page_size: ClassVar[int] = 500

    @property
    def interval(self) -> timedelta:
        """Return the time from one run to the next; OBSERVER_INTERVALS overrides it."""
        if not self.interval_setting:
            return DEFAULT_INTERVAL
        return timedelta(seconds=settings.CONFIG[self.interval_setting])

    @property
    def target_statuses(self) -> Collection[SessionStatus]:
        """Only kernels of sessions with these statuses; empty: no filter."""
        return ()

    @property
    def target_kernel_statuses(self) -> Collection[KernelStatus]:
        """Only kernels with these statuses; empty: no filter."""
        return ()

    @classmethod
    @abstractmethod
    def name(cls) -> str:
        """Return the name on pages, in the schedule, the API and the metrics."""

    def fetch_targets(self, *args: Any, **kwargs: Any) -> Iterable[T] | Awaitable[Iterable[T]]:
        """Return the targets, read during the run; by default kernels with the target statuses."""
        return kernels_of(self)

    @abstractmethod
    def execute(
        self, targets: Sequence[T], *args: Any, **kwargs: Any
    ) -> ObserverResult | Awaitable[ObserverResult]:
        """Observe some targets and record the result.

        If it raises an exception, it is called again for each target alone. Observing twice must do no harm.
        """

    def post_process(self, result: ObserverResult, *args: object, **kwargs: Any) -> Awaitable[None] | None:
        """Called once after the last target, with the sum of all results; not called without targets."""
        return _nothing()

    def lag(self, now: datetime) -> timedelta | None:
        """Return how far the records are behind; None if they are up to date."""
        return None


def kernels_of(observer: ObserverHandler[Any]) -> Iterator[Any]:
    """Yield kernels with the observer's target statuses and their sessions."""
    rows = Kernel.objects.select_related("session")
    if statuses := attribute_value(observer.target_statuses):
        rows = rows.filter(session__status__in=list(statuses))
    if statuses := attribute_value(observer.target_kernel_statuses):
        rows = rows.filter(status__in=list(statuses))
    for page in in_key_order(rows, KERNELS_READ):
        yield from page


def in_key_order(rows: QuerySet[AnyRow], size: int) -> Iterator[list[AnyRow]]:
    """Yield pages by key, so that a run reads each unchanged row once."""
    rows, after = rows.order_by("pk"), None
    while page := list((rows if after is None else rows.filter(pk__gt=after))[:size]):
        yield page
        after = page[-1].pk


def interval_of(runnable: Any) -> timedelta:
    """Return the interval of an observer or handler: the one set by name, otherwise its own."""
    interval = settings.CONFIG["OBSERVER_INTERVALS"].get(runnable.name(), attribute_value(runnable.interval))
    return interval if isinstance(interval, timedelta) else timedelta(seconds=interval)


def check_observer(observer: object) -> ObserverHandler[Any]:
    """Return the observer if the coordinator and beat can run it; raise otherwise."""
    if not isinstance(observer, ObserverHandler):
        raise TypeError(f"{observer!r} is not an ObserverHandler")
    name = observer.name()
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"the name must have 1 to 63 letters, digits, “-” or “_”, but is {name!r}")
    if interval_of(observer) <= timedelta(0):
        raise ValueError(f"the interval must be greater than 0, but is {observer.interval}")
    if not isinstance(observer.initial_delay, timedelta | None):
        raise TypeError(f"initial_delay must be a timedelta, but is {observer.initial_delay!r}")
    if observer.page_size < 1:
        raise ValueError(f"page_size must be at least 1, but is {observer.page_size}")
    return observer


def attribute_value(value: object) -> Any:
    """Return the value of an attribute, property or method."""
    return value() if callable(value) else value


def call(method: Any, *values: Any, now: datetime) -> Any:
    """Call a method of an observer; pass the time if it has a parameter for it, and await a coroutine."""
    named = {"now": now} if "now" in signature(method).parameters else {}
    result = method(*values, **named)
    return async_to_sync(_awaited)(result) if isawaitable(result) else result


async def _awaited(result: Awaitable[T]) -> T:
    return await result


async def _nothing() -> None:
    """Awaitable result of `super().post_process(result)`."""
