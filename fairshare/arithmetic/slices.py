"""Cutting time into slices aligned to the clock: plain Python over milliseconds since 1970, UTC.

The database does the same with `generate_series`; these functions say what it has to give.
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
    """A piece of time in which nothing changes: from where, how long."""

    start: int
    length: int


def to_ms(moment: datetime) -> int:
    """Whole milliseconds since 1970; what is finer is left out on both ends alike."""
    return (moment - EPOCH) // _MILLISECOND


def to_moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def day_of(ms: int) -> date:
    """The UTC day in which a moment lies."""
    return to_moment(ms).date()


def floor_slice(ms: int) -> int:
    """The last boundary that is over."""
    return ms - ms % SLICE_MS


def charged_until(*, ended: int | None, now: int) -> int:
    """How far an allocation can be charged now: to its end, or to the last boundary while it is held."""
    return floor_slice(now) if ended is None else ended


def cut(start: int, end: int) -> Iterator[Slice]:
    """[start, end) cut at every boundary; as a day is a whole number of slices, at every UTC midnight."""
    while start < end:
        piece_end = min(floor_slice(start) + SLICE_MS, end)
        yield Slice(start, piece_end - start)
        start = piece_end
