"""Charts of separate events over time: a point for each series and step, without lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.translation import gettext

from lcm.web.charts.scales import format_number, labelled, scale_over
from lcm.web.charts.series import kind_of
from lcm.web.charts.tables import ChartTable, newest_rows_note
from lcm.web.charts.time_axis import AxisLabel, TimeAxis, Zoom
from lcm.web.zones import with_zone

# Heights are pixels, widths are percent: points move with the page, texts keep their size.
TOP, BOTTOM, HEIGHT = 24, 136, 156
ROWS = 100
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Point:
    """A value at a time; points of the rest have no series."""

    at: datetime
    value: float
    series: str = ""


@dataclass(frozen=True)
class PointMark:
    """A drawn point; the first line of its title is the time, the second its value."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class PointSeries:
    name: str
    kind: int
    marks: list[PointMark]
    most: str


@dataclass(frozen=True)
class PointChart:
    """Data of a point chart for its template."""

    title: str
    unit: str
    series: list[PointSeries]
    grid: list[tuple[float, str]]
    labels: list[AxisLabel]
    zoom: Zoom
    table: ChartTable
    # The time zone of the labels, unless the person chose it.
    zone: str = ""
    height: int = HEIGHT
    labels_y: int = HEIGHT - 4


def point_chart(
    points: Sequence[Point],
    *,
    axis: TimeAxis,
    step: timedelta = timedelta(0),
    title: str,
    unit: str,
    rest: str = "",
    zoom_address: str = "",
) -> PointChart | None:
    """Return a chart with one colour for each series, or None without points; `rest` names the rest.

    A point represents the step that begins at its time, and is drawn in the middle of the step.
    """
    if not points:
        return None
    shown = sorted(points, key=lambda point: point.at)
    scale = scale_over([point.value for point in shown], bottom=BOTTOM, top=TOP, from_zero=True)
    names = sorted({point.series for point in shown}, key=lambda name: (not name, name.casefold()))

    def mark(point: Point) -> PointMark:
        value = f"{point.series or rest} {_amount(point.value, unit)}".strip()
        x = axis.place(min(max(point.at + step / 2, axis.start), axis.end))
        return PointMark(x, scale.place(point.value), f"{_time(point.at, step)}\n{value}")

    return PointChart(
        title=title,
        unit=unit,
        series=[
            PointSeries(
                name=name or rest,
                kind=kind_of(number, is_rest=bool(rest) and not name),
                marks=[mark(point) for point in shown if point.series == name],
                most=_amount(max(point.value for point in shown if point.series == name), unit),
            )
            for number, name in enumerate(names)
        ],
        grid=[(scale.place(tick), format_number(tick)) for tick in labelled(scale)],
        labels=axis.labels,
        zoom=axis.zoom(zoom_address),
        table=_table(shown, [(name, name or rest) for name in names], unit, step),
        zone=with_zone("", timezone.localtime(axis.end)).strip(),
    )


def _table(
    shown: Sequence[Point], names: Sequence[tuple[str, str]], unit: str, step: timedelta
) -> ChartTable:
    """Return a row for each time, the newest first, with a column for each series."""
    values: dict[datetime, dict[str, str]] = {}
    for point in reversed(shown):
        values.setdefault(point.at, {})[point.series] = format_number(point.value)
    rows = [
        (_time(at, step), [found.get(name, "") for name, _label in names]) for at, found in values.items()
    ]
    heads = [f"{label}, {unit}" if label else unit for _name, label in names]
    return ChartTable(gettext("When"), heads, rows[:ROWS], newest_rows_note(ROWS, len(rows)))


def _time(moment: datetime, step: timedelta) -> str:
    local = timezone.localtime(moment)
    return with_zone(format_date(local, "d M H:i" if step >= MINUTE else "d M H:i:s"), local)


def _amount(value: float, unit: str) -> str:
    return f"{format_number(value)} {unit}"
