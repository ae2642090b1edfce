"""Stacked columns, a column a day."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

from lcm.web.charts.scales import told
from lcm.web.charts.tables import ChartTable

LEFT, TOP, BOTTOM = 44.0, 8.0, 210.0
WIDTH = 760.0
LABELS = 14
# Times a power of ten: where the axis may end.
TOPS = (1.2, 1.5, 2.4, 3.0, 4.5, 6.0, 7.5, 9.0, 12.0)


@dataclass(frozen=True)
class Series:
    """One subject's numbers, one a day, and their sum."""

    name: str
    values: list[float]

    @property
    def total(self) -> float:
        return sum(self.values)


@dataclass(frozen=True)
class ByDay:
    """Days and the subjects that used most, the rest together."""

    days: list[date]
    series: list[Series]


@dataclass(frozen=True)
class Segment:
    y: float
    height: float
    kind: int
    title: str


@dataclass(frozen=True)
class Column:
    x: float
    width: float
    label: str
    segments: list[Segment]

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class ColumnChart:
    """Everything that is drawn."""

    title: str
    unit: str
    width: float
    lines: list[tuple[float, str]]
    columns: list[Column]
    legend: list[tuple[int, str, str]]
    table: ChartTable


def stacked(found: ByDay, *, unit: str, width: float = WIDTH) -> ColumnChart:
    """Columns from zero, grid lines at round numbers, the same numbers as a table."""
    top = _round_up(
        max((sum(values) for values in zip(*(s.values for s in found.series), strict=True)), default=0.0)
    )
    scale = (BOTTOM - TOP) / top
    step = (width - 4 - LEFT) / max(len(found.days), 1)
    every = math.ceil(len(found.days) / LABELS)
    columns = []
    for number, day in enumerate(found.days):
        label = f"{day.day} {day:%b}" if number == 0 or day.day == 1 else str(day.day)
        columns.append(
            Column(
                LEFT + step * number + step * 0.16,
                step * 0.68,
                label if number % every == 0 else "",
                _segments(found, number, scale, unit),
            )
        )
    first, last = found.days[0], found.days[-1]
    rows = [
        (day.isoformat(), [told(series.values[number]) for series in found.series])
        for number, day in enumerate(found.days)
    ]
    return ColumnChart(
        title=f"{unit[0].upper()}{unit[1:]} a day, {first:%d %b} to {last:%d %b}",
        unit=unit,
        width=width,
        lines=[(BOTTOM - top * part / 3 * scale, told(top * part / 3)) for part in range(4)],
        columns=columns,
        legend=[(kind, series.name, told(series.total)) for kind, series in enumerate(found.series, 1)],
        table=ChartTable("Day", [series.name for series in found.series], rows),
    )


def _segments(found: ByDay, number: int, scale: float, unit: str) -> list[Segment]:
    y, segments = BOTTOM, []
    day = found.days[number]
    for kind, series in enumerate(found.series, 1):
        value = series.values[number]
        if value > 0:
            y -= value * scale
            title = f"{day:%d %b}: {series.name} {told(value)} {unit}"
            segments.append(Segment(y, value * scale, kind, title))
    return segments


def _round_up(value: float) -> float:
    """The next number that three divides into round ones."""
    if value <= 0:
        return 3.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(each * power for each in TOPS if each * power >= value)
