"""What filters count from: this moment and time zone, or those in which a job was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from django.utils import timezone

_asked_at: ContextVar[datetime | None] = ContextVar("asked_at", default=None)


def filter_now() -> datetime:
    """What “late” or “in the last hour” is measured by."""
    return _asked_at.get() or timezone.now()


@contextmanager
def use_filter_time(moment: datetime, zone: str) -> Iterator[None]:
    """Filters find what they found then: for the steps of a job that were confirmed for those rows."""
    token = _asked_at.set(moment)
    try:
        with timezone.override(zone):
            yield
    finally:
        _asked_at.reset(token)
