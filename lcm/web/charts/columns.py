"""Stacked columns, one per day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.dateformat import format as format_date
from django.utils.translation import gettext

from lcm.web.charts.scales import format_number
from lcm.web.charts.tables import ChartTable

# Heights are pixels, widths are percent: columns stretch with the page, texts do not.
TOP, BOTTOM, HEIGHT = 24.0, 206.0, 228
# Number of labelled days, on a wide screen and on a phone.
LABELS, FEW_LABELS = 14, 6
# With more days, columns have no gaps and the chart scrolls.
MANY = 62
# Axis ends are these numbers times a power of ten.
TOPS = (1.2, 1.5, 2.4, 3.0, 4.5, 6.0, 7.5, 9.0, 12.0)


@dataclass(frozen=True)
class Series:
    """The daily numbers of one subject and their sum."""

    name: str
    values: list[float]

    @property
    def total(self) -> float:
        return sum(self.values)


@dataclass(frozen=True)
class ByDay:
    """Days with their subjects: the largest by name, the rest summed at the end."""

    days: list[date]
    series: list[Series]


@dataclass(frozen=True)
class ColumnSegment:
    y: float
    height: float
    kind: int
    title: str


@dataclass(frozen=True)
class ChartColumn:
    x: float
    width: float
    segments: list[ColumnSegment]


@dataclass(frozen=True)
class AxisLabel:
    """Label of a column; `look` says whether wide or narrow charts show it."""

    x: float
    look: str
    text: str


@dataclass(frozen=True)
class ColumnChart:
    """Data of a column chart for its template."""

    title: str
    unit: str
    lines: list[tuple[float, str]]
    columns: list[ChartColumn]
    labels: list[AxisLabel]
    legend: list[tuple[int, str, str]]
    table: ChartTable
    height: int = HEIGHT
    labels_y: int = HEIGHT - 4

    @property
    def is_long(self) -> bool:
        return len(self.columns) > MANY


def stacked(found: ByDay, *, unit: str) -> ColumnChart:
    """Return stacked columns from zero, with grid lines at round numbers and a data table."""
    top = _round_up(
        max((sum(values) for values in zip(*(s.values for s in found.series), strict=True)), default=0.0)
    )
    scale = (BOTTOM - TOP) / top
    first, last = found.days[0], found.days[-1]
    rows = [
        (day.isoformat(), [format_number(series.values[number]) for series in found.series])
        for number, day in enumerate(found.days)
    ]
    return ColumnChart(
        title=gettext("%(unit)s a day, %(first)s to %(last)s")
        % {
            "unit": f"{unit[0].upper()}{unit[1:]}",
            "first": format_date(first, "d M"),
            "last": format_date(last, "d M"),
        },
        unit=unit,
        lines=[(BOTTOM - top * part / 3 * scale, format_number(top * part / 3)) for part in range(4)],
        columns=_columns(found, scale, unit),
        labels=[*_labels(found.days, "wide-label", LABELS), *_labels(found.days, "narrow-label", FEW_LABELS)],
        legend=[
            (kind, series.name, format_number(series.total)) for kind, series in enumerate(found.series, 1)
        ],
        table=ChartTable(gettext("Day, UTC"), [f"{series.name}, {unit}" for series in found.series], rows),
    )


def _columns(found: ByDay, scale: float, unit: str) -> list[ChartColumn]:
    step = 100 / len(found.days)
    gap = 0.0 if len(found.days) > MANY else 0.16
    return [
        ChartColumn(step * (number + gap), step * (1 - 2 * gap), _segments(found, number, scale, unit))
        for number in range(len(found.days))
    ]


def _labels(days: Sequence[date], look: str, most: int) -> Iterator[AxisLabel]:
    """Return evenly spaced day labels; the first one, and the first of each month, include the month."""
    step = 100 / len(days)
    month = None
    for number in range(0, len(days), math.ceil(len(days) / most)):
        day = days[number]
        text = str(day.day) if day.month == month else format_date(day, "j M")
        month = day.month
        if number == 0:
            yield AxisLabel(0, look, text)
        elif number == len(days) - 1 and text != str(day.day):
            yield AxisLabel(100, f"end {look}", text)
        else:
            yield AxisLabel(step * (number + 0.5), f"mid {look}", text)


def _segments(found: ByDay, number: int, scale: float, unit: str) -> list[ColumnSegment]:
    y, segments = BOTTOM, []
    day = format_date(found.days[number], "d M")
    for kind, series in enumerate(found.series, 1):
        value = series.values[number]
        if value > 0:
            y -= value * scale
            title = f"{day}: {series.name} {format_number(value)} {unit}"
            segments.append(ColumnSegment(y, value * scale, kind, title))
    return segments


def _round_up(value: float) -> float:
    """Round up to a number whose thirds are round."""
    if value <= 0:
        return 3.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(each * power for each in TOPS if each * power >= value)
