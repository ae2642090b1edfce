"""Time slices aligned to the clock, in milliseconds since 1970 UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

SLICE_MS = 300_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Return whole milliseconds since 1970, rounded down."""
    return (moment - EPOCH) // _MILLISECOND


def to_moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def day_of(ms: int) -> date:
    """Return the UTC day of a time."""
    return to_moment(ms).date()


def floor_slice(ms: int) -> int:
    """Return the last slice boundary at or before this time."""
    return ms - ms % SLICE_MS
