"""Time zone of a page: the person's, else the installation's, which times then name."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone

_chosen: ContextVar[bool] = ContextVar("zone_chosen", default=False)


@contextmanager
def use_zone_of(user: object) -> Iterator[None]:
    """Show times in the zone that the person chose; without one, in the installation's zone with its name."""
    chosen = _zone(getattr(user, "time_zone", ""))
    token = _chosen.set(chosen is not None)
    try:
        with timezone.override(chosen or _zone(settings.TIME_ZONE) or UTC):
            yield
    finally:
        _chosen.reset(token)


def with_zone(text: str, local: datetime) -> str:
    """Add the name of the zone to a local time, unless the person chose that zone."""
    return text if _chosen.get() else f"{text} {local.tzname()}"


def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None
