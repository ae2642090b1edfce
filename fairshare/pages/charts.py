"""A chart of stacked columns, a column a day: numbers for the SVG in `fairshare/chart.html`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairshare.selectors.usage import ByDay

LEFT, TOP, BOTTOM = 44.0, 8.0, 210.0
WIDTH = 760.0
LABELS = 14


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
class Chart:
    """Everything that is drawn."""

    title: str
    unit: str
    width: float
    lines: list[tuple[float, str]]
    columns: list[Column]
    legend: list[tuple[int, str, str]]
    table: list[tuple[str, list[str]]]


def stacked(found: ByDay, *, unit: str, width: float = WIDTH) -> Chart:
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
        y, segments = BOTTOM, []
        for kind, series in enumerate(found.series, 1):
            value = series.values[number]
            if value > 0:
                y -= value * scale
                segments.append(
                    Segment(y, value * scale, kind, f"{day:%d %b}: {series.name} {told(value)} {unit}")
                )
        columns.append(
            Column(
                LEFT + step * number + step * 0.16,
                step * 0.68,
                label if number % every == 0 else "",
                segments,
            )
        )
    first, last = found.days[0], found.days[-1]
    return Chart(
        title=f"{unit[0].upper()}{unit[1:]} a day, {first:%d %b} to {last:%d %b}",
        unit=unit,
        width=width,
        lines=[(BOTTOM - top * part / 3 * scale, told(top * part / 3)) for part in range(4)],
        columns=columns,
        legend=[(kind, series.name, told(series.total)) for kind, series in enumerate(found.series, 1)],
        table=[
            (day.isoformat(), [told(series.values[number]) for series in found.series])
            for number, day in enumerate(found.days)
        ],
    )


def told(value: float) -> str:
    """Three digits that matter: `9.1 k`, `146`, `0.75`."""
    if value >= 10_000:
        return f"{value / 1000:,.1f} k"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _round_up(value: float) -> float:
    """The next 3, 6, 15 or 30 times a power of ten: divisible by three into round numbers."""
    if value <= 0:
        return 3.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(each * power for each in (1.5, 3.0, 6.0, 15.0) if each * power >= value)
