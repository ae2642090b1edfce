"""Division of time into slices aligned to the clock, in milliseconds since 1970 UTC.

The database does the same with `generate_series`; these functions are the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

SLICE_MS = 300_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Slice(NamedTuple):
    """An interval: start and length."""

    start: int
    length: int


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


def charged_until(*, ended: int | None, now: int) -> int:
    """Return the time up to which an allocation can be charged: its end, or the last boundary while held."""
    return floor_slice(now) if ended is None else ended


def cut(start: int, end: int) -> Iterator[Slice]:
    """Split [start, end) at every slice boundary, and so at every UTC midnight."""
    while start < end:
        piece_end = min(floor_slice(start) + SLICE_MS, end)
        yield Slice(start, piece_end - start)
        start = piece_end
