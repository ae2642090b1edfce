"""A value over time as a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from lcm.web.charts.scales import places_along, scale_over, times_along, told
from lcm.web.charts.tables import ChartTable

WIDTH, HEIGHT = 380, 150
LEFT, RIGHT, TOP, BOTTOM = 42, 372, 8, 128
MARKED = 120
ROWS = 100


@dataclass(frozen=True)
class Point:
    at: datetime
    value: float
    what: str = ""


@dataclass(frozen=True)
class LineChart:
    """Everything that is drawn; `figures` are said in words under it."""

    title: str
    unit: str
    line: str
    area: str
    grid: list[tuple[float, str]]
    times: list[tuple[float, str, str]]
    marks: list[tuple[float, float, str]]
    figures: list[tuple[str, str]]
    table: ChartTable
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    times_y: int = HEIGHT - 4


def line_chart(points: Sequence[Point], *, title: str, unit: str) -> LineChart | None:
    """The points in the order of their time; nothing when there are none."""
    if not points:
        return None
    shown = sorted(points, key=lambda point: point.at)
    values = [point.value for point in shown]
    scale = scale_over(values, bottom=BOTTOM, top=TOP, from_zero=True)
    xs = places_along([point.at for point in shown], LEFT, RIGHT)
    places = [(x, scale.place(value)) for x, value in zip(xs, values, strict=True)]
    line = " ".join(f"{x},{y}" for x, y in places)
    every = max(len(shown) // MARKED, 1)
    return LineChart(
        title=title,
        unit=unit,
        line=line,
        area=f"{places[0][0]},{BOTTOM} {line} {places[-1][0]},{BOTTOM}",
        grid=[(scale.place(tick), told(tick)) for tick in scale.ticks[::2]],
        times=times_along([point.at for point in shown], LEFT, RIGHT),
        marks=[
            (*place, f"{_when(point)}: {told(point.value)} {unit}{_of(point)}")
            for place, point in list(zip(places, shown, strict=True))[::every]
        ],
        figures=[
            ("last", f"{told(values[-1])} {unit}"),
            ("p95", f"{told(sorted(values)[round(0.95 * (len(values) - 1))])} {unit}"),
            ("max", f"{told(max(values))} {unit}"),
        ],
        table=_table(shown, unit),
    )


def _table(shown: Sequence[Point], unit: str) -> ChartTable:
    newest = list(reversed(shown))
    rows = [(f"{_when(point)}{_of(point)}", [told(point.value)]) for point in newest[:ROWS]]
    hidden = len(newest) - len(rows)
    return ChartTable("When", [unit], rows, f"The newest {ROWS} of {len(newest):,}." if hidden else "")


def _when(point: Point) -> str:
    return f"{timezone.localtime(point.at):%d %b %H:%M:%S}"


def _of(point: Point) -> str:
    return f", {point.what}" if point.what else ""
