"""Reference time and time zone of relative filters: the current ones, or the ones a job was started with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from django.utils import timezone

_reference_time: ContextVar[datetime | None] = ContextVar("reference_time", default=None)


def filter_now() -> datetime:
    """Return the time that filters such as “late” or “in the last hour” refer to."""
    return _reference_time.get() or timezone.now()


@contextmanager
def use_filter_time(moment: datetime, zone: str) -> Iterator[None]:
    """Evaluate filters as of a time and time zone, so that each step of a job finds the confirmed rows."""
    token = _reference_time.set(moment)
    try:
        with timezone.override(zone):
            yield
    finally:
        _reference_time.reset(token)
