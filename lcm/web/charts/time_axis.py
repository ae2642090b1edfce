"""The time axis of a chart: labels at round local times, and what the browser needs to zoom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from math import ceil

from django.utils import timezone
from django.utils.dateformat import format as format_date

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STEPS = [
    *(timedelta(seconds=number) for number in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=number) for number in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=number) for number in (1, 2, 3, 6, 12)),
    *(timedelta(days=number) for number in (1, 2, 7, 14, 28, 91, 182, 364)),
]
# Labels on a wide screen and on a phone, and how near to an end a label is aligned with it.
WIDE, NARROW, END = 6, 3, 8.0


@dataclass(frozen=True)
class AxisLabel:
    """Label of an axis, in percent; `css_class` has its alignment and the chart widths that show it."""

    x: float
    css_class: str
    text: str


@dataclass(frozen=True)
class Zoom:
    """The times at the ends of a chart, in seconds, and the address that takes a selected part of them.

    Without an address it is the page itself.
    """

    start: float
    end: float
    address: str = ""
    daily: bool = False


@dataclass(frozen=True)
class TimeAxis:
    """Maps times to percent of the width."""

    start: datetime
    end: datetime

    def place(self, moment: datetime) -> float:
        return round(100 * (moment - self.start) / (self.end - self.start), 2)

    @property
    def labels(self) -> list[AxisLabel]:
        return [*self._labels(WIDE, "wide-label"), *self._labels(NARROW, "narrow-label")]

    def zoom(self, address: str = "") -> Zoom:
        return Zoom(self.start.timestamp(), self.end.timestamp(), address)

    def _labels(self, most: int, width: str) -> Iterator[AxisLabel]:
        """Yield labels at least a `most`th of the width apart; the first of a day is its date."""
        step = next((each for each in STEPS if each * most >= self.end - self.start), STEPS[-1])
        pattern = "H:i:s" if step < timedelta(minutes=1) else "H:i" if step < DAY else "d M"
        for moment in round_times(self.start, self.end, step):
            is_midnight = moment.time() == time()
            x = self.place(moment)
            align = "" if x < END else "end" if x > 100 - END else "mid"
            yield AxisLabel(
                x, f"{align} {width}".strip(), format_date(moment, "d M" if is_midnight else pattern)
            )


def round_times(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    """Yield the local times from start to end that are whole steps after a local midnight.

    Steps of days count from a fixed Monday, so that the labels stay when the range moves.
    """
    begin = timezone.localtime(start)
    if step <= HOUR:
        # Real time: an hour that the clock repeats has labels too.
        moment = begin.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
        moment += ceil((start - moment) / step) * step
        while moment <= end:
            yield timezone.localtime(moment)
            moment += step
        return
    day = begin.date()
    clock = datetime.combine(day - timedelta(days=(day.toordinal() - 1) % max(step.days, 1)), time())
    # Local time: labels stay at the same hours when the clock changes.
    while (moment := clock.replace(tzinfo=begin.tzinfo).astimezone(UTC)) <= end:
        if moment >= start:
            yield timezone.localtime(moment)
        clock += step
