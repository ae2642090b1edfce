"""Stacked columns, one per day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.utils.dateformat import format as format_date
from django.utils.translation import gettext

from lcm.web.charts.scales import format_number
from lcm.web.charts.series import Series, kind_of
from lcm.web.charts.tables import ChartTable
from lcm.web.charts.time_axis import AxisLabel, Zoom

# Heights are pixels, widths are percent: columns stretch with the page, texts do not.
TOP, BOTTOM, HEIGHT = 24.0, 206.0, 228
# Number of labelled days, on a wide screen and on a phone.
LABELS, FEW_LABELS = 14, 6
# Width of the first label on a wide screen and half of the second, in percent.
FIRST_LABEL = 9.5
# With more days, columns have no gaps and the chart scrolls.
MANY = 62
# Axis ends are these numbers times a power of ten.
TOPS = (1.2, 1.5, 2.4, 3.0, 4.5, 6.0, 7.5, 9.0, 12.0)


@dataclass(frozen=True)
class ByDay:
    """Days with their subjects: the largest by name, the rest summed at the end."""

    days: list[date]
    series: list[Series]


@dataclass(frozen=True)
class ColumnSegment:
    """A part of a column; the first line of its title is the day and the unit, the second its value."""

    x: float
    width: float
    y: float
    height: float
    title: str


@dataclass(frozen=True)
class ColumnLayer:
    """The segments of one series."""

    name: str
    kind: int
    total: str
    segments: list[ColumnSegment]


@dataclass(frozen=True)
class ColumnChart:
    """Data of a column chart for its template."""

    title: str
    unit: str
    lines: list[tuple[float, str]]
    layers: list[ColumnLayer]
    labels: list[AxisLabel]
    days: int
    zoom: Zoom
    table: ChartTable
    # Whether the rest is larger than every named series.
    rest_exceeds: bool = False
    height: int = HEIGHT
    labels_y: int = HEIGHT - 4
    bottom: float = BOTTOM

    @property
    def is_long(self) -> bool:
        return self.days > MANY


def stacked(data: ByDay, *, unit: str, zoom_address: str = "") -> ColumnChart:
    """Return stacked columns from zero, with grid lines at round numbers and a data table."""
    top = _round_up(
        max((sum(values) for values in zip(*(s.values for s in data.series), strict=True)), default=0.0)
    )
    scale = (BOTTOM - TOP) / top
    first, last = data.days[0], data.days[-1]
    rows = [
        (day.isoformat(), [format_number(series.values[number]) for series in data.series])
        for number, day in enumerate(data.days)
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
        layers=_layers(data, scale, unit),
        labels=[*_labels(data.days, "wide-label", LABELS), *_labels(data.days, "narrow-label", FEW_LABELS)],
        days=len(data.days),
        zoom=Zoom(
            _midnight(first), _midnight(last) + timedelta(days=1).total_seconds(), zoom_address, daily=True
        ),
        table=ChartTable(gettext("Day, UTC"), [f"{series.name}, {unit}" for series in data.series], rows),
        rest_exceeds=_rest_exceeds(data.series),
    )


def _layers(data: ByDay, scale: float, unit: str) -> list[ColumnLayer]:
    step = 100 / len(data.days)
    gap = 0.0 if len(data.days) > MANY else 0.16
    days = [format_date(day, "d M") for day in data.days]
    tops, layers = [BOTTOM] * len(data.days), []
    for position, series in enumerate(data.series):
        segments = []
        for number, value in enumerate(series.values):
            if value > 0:
                tops[number] -= value * scale
                title = f"{days[number]}, {unit}\n{series.name} {format_number(value)}"
                x, width = step * (number + gap), step * (1 - 2 * gap)
                segments.append(ColumnSegment(x, width, tops[number], value * scale, title))
        kind = kind_of(position, is_rest=series.is_rest)
        layers.append(ColumnLayer(series.name, kind, format_number(series.total), segments))
    return layers


def _rest_exceeds(series: Sequence[Series]) -> bool:
    named = [each.total for each in series if not each.is_rest]
    return any(each.is_rest and each.total > max(named, default=0) for each in series)


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()


def _labels(days: Sequence[date], css_class: str, most: int) -> Iterator[AxisLabel]:
    """Return evenly spaced day labels; the first one, and the first of each month, include the month.

    The first label begins at the edge, so the second one is omitted if it would be too close.
    """
    step = 100 / len(days)
    month = None
    for number in range(0, len(days), math.ceil(len(days) / most)):
        day = days[number]
        if number and step * (number + 0.5) < FIRST_LABEL * LABELS / most:
            continue
        text = str(day.day) if day.month == month else format_date(day, "j M")
        month = day.month
        if number == 0:
            yield AxisLabel(0, css_class, text)
        elif number == len(days) - 1 and text != str(day.day):
            yield AxisLabel(100, f"end {css_class}", text)
        else:
            yield AxisLabel(step * (number + 0.5), f"mid {css_class}", text)


def _round_up(value: float) -> float:
    """Round up to a number whose thirds are round."""
    if value <= 0:
        return 3.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(each * power for each in TOPS if each * power >= value)
