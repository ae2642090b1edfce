"""Axes: round ticks for values, dates or times of day for timestamps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateformat import format as format_date

# Below this span, three labels would read the same.
TO_THE_SECOND = timedelta(minutes=2)
STEPS = (1, 2, 2.5, 5, 10)
TICKS = 6
# The axis starts at zero, unless the lowest value is at least this share of the highest.
CLOSE = 2 / 3
# More labels than this are thinned out where the chart is low.
LABELS = 5


@dataclass(frozen=True)
class Scale:
    """A range of values with round ticks, mapped to a range of coordinates."""

    low: float
    high: float
    ticks: list[float]
    bottom: float
    top: float

    @property
    def is_broken(self) -> bool:
        """Return whether the axis does not start at zero, which a chart has to mark."""
        return self.low > 0

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.bottom - share * (self.bottom - self.top), 1)


def scale_over(
    values: Sequence[float], *, bottom: float, top: float, from_zero: bool = False, least: float = 0.0
) -> Scale:
    """Return a scale with padding at both ends; `least` is the minimum padding and step.

    It starts at zero, unless all values are close together; then `is_broken` is true.
    """
    smallest, largest = min(values, default=0), max(values, default=1)
    from_zero = from_zero or smallest < CLOSE * largest
    if from_zero:
        smallest = 0
    room = max((largest - smallest) / 10, least) or largest / 10 or 1
    start = 0 if from_zero else max(smallest - room, 0)
    step = _round_step(max((largest + room - start) / TICKS, least / 5))
    low = math.floor(start / step) * step
    count = math.ceil((largest + room - low) / step - 1e-9)
    return Scale(low, low + count * step, [low + number * step for number in range(count + 1)], bottom, top)


def _round_step(minimum: float) -> float:
    power = 10.0 ** math.floor(math.log10(minimum))
    step = next(each * power for each in STEPS if each * power >= minimum * (1 - 1e-9))
    return int(step) if step == int(step) else step


def times_along(moments: Sequence[datetime], left: float, right: float) -> list[tuple[float, str, str]]:
    """Return coordinate, anchor and text for the first, middle and last time, as dates or times of day.

    The middle one is omitted if it has the same date as another.
    """
    if not moments:
        return []
    first, last = timezone.localtime(min(moments)), timezone.localtime(max(moments))
    pattern = "H:i" if first.date() == last.date() else "d M"
    if last - first < TO_THE_SECOND:
        pattern = "H:i:s"
    if first == last:
        return [((left + right) / 2, "mid", format_date(first, pattern))]
    middle = first + (last - first) / 2
    labels = [
        (left, "", format_date(first, pattern)),
        ((left + right) / 2, "mid", format_date(middle, pattern)),
        (right, "end", format_date(last, pattern)),
    ]
    is_repeated = labels[1][2] in (labels[0][2], labels[2][2])
    return labels[::2] if is_repeated else labels


def places_along(moments: Sequence[datetime], left: float, right: float) -> list[float]:
    """Map each time to a coordinate, from `left` for the first to `right` for the last."""
    if not moments:
        return []
    first = min(moments)
    length = (max(moments) - first).total_seconds()
    shares = [((moment - first).total_seconds() / length if length else 0.5) for moment in moments]
    return [round(left + share * (right - left), 1) for share in shares]


def labelled(scale: Scale) -> list[float]:
    """Return every tick, or every other tick if there are many and that keeps both ends."""
    return scale.ticks[::2] if len(scale.ticks) > LABELS and len(scale.ticks) % 2 else scale.ticks


def format_number(value: float) -> str:
    """Format with three significant digits: `12.3 k`, `146`, `68.4`, `0.75`."""
    if value >= 10_000:
        return f"{value / 1000:,.1f} k"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2}f}".rstrip("0").rstrip(".")
