"""Line charts of values over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.translation import gettext

from lcm.web.charts.scales import Scale, format_number, places_along, scale_over, times_along
from lcm.web.charts.tables import ChartTable, newest_rows_note

# Heights are pixels, widths are thousandths: lines stretch with the page, texts do not.
TOP, BOTTOM, HEIGHT, WIDTH = 24, 136, 156, 1000
# Number of lines with a colour of their own.
KINDS = 4
LABELS = 5
MARKED = 120
ROWS = 100


@dataclass(frozen=True)
class Point:
    at: datetime
    value: float
    what: str = ""


@dataclass(frozen=True)
class ChartLine:
    """The values of one series; `kind` is its colour."""

    name: str
    kind: int
    points: str
    last: str


@dataclass(frozen=True)
class LineChart:
    """Data of a line chart; `figures` are listed below it as text."""

    title: str
    unit: str
    lines: list[ChartLine]
    area: str
    grid: list[tuple[float, str]]
    times: list[tuple[float, str, str]]
    marks: list[tuple[float, float, str]]
    figures: list[tuple[str, str]]
    table: ChartTable
    width: int = WIDTH
    height: int = HEIGHT
    bottom: int = BOTTOM
    labels_y: int = HEIGHT - 4

    @property
    def named(self) -> list[ChartLine]:
        """Return the lines that have a colour of their own."""
        return self.lines[:KINDS]

    @property
    def others(self) -> int:
        return len(self.lines) - len(self.named)


def line_chart(points: Sequence[Point], *, title: str, unit: str) -> LineChart | None:
    """Return a chart with one line per series, or None if there are no points."""
    if not points:
        return None
    shown = sorted(points, key=lambda point: point.at)
    values = [point.value for point in shown]
    scale = scale_over(values, bottom=BOTTOM, top=TOP, from_zero=True)
    xs = places_along([point.at for point in shown], 0, WIDTH)
    placed = [(x, scale.place(point.value), point) for x, point in zip(xs, shown, strict=True)]
    lines = _lines(placed, unit)
    every = max(len(shown) // MARKED, 1)
    return LineChart(
        title=title,
        unit=unit,
        lines=lines,
        area=f"{xs[0]},{BOTTOM} {lines[0].points} {xs[-1]},{BOTTOM}" if len(lines) == 1 else "",
        grid=[(scale.place(tick), format_number(tick)) for tick in _labelled(scale)],
        times=times_along([point.at for point in shown], 0, 100),
        marks=[
            (x / WIDTH * 100, y, f"{_when(point)}: {format_number(point.value)} {unit}{_of(point)}")
            for x, y, point in placed[::every]
        ],
        figures=[
            ("p95", f"{format_number(sorted(values)[round(0.95 * (len(values) - 1))])} {unit}"),
            (gettext("max"), f"{format_number(max(values))} {unit}"),
        ],
        table=_table(shown, unit),
    )


def _lines(placed: Sequence[tuple[float, float, Point]], unit: str) -> list[ChartLine]:
    by_name = groupby(sorted(placed, key=lambda each: each[2].what), key=lambda each: each[2].what)
    lines = []
    for number, (name, found) in enumerate(by_name, 1):
        mine = list(found)
        # A path needs two ends, even if they coincide.
        points = " ".join(f"{x},{y}" for x, y, _ in (mine if len(mine) > 1 else mine * 2))
        lines.append(
            ChartLine(name, min(number, KINDS + 1), points, f"{format_number(mine[-1][2].value)} {unit}")
        )
    return lines


def _labelled(scale: Scale) -> list[float]:
    """Return every tick, or every other tick if that keeps both ends."""
    crowded = len(scale.ticks) > LABELS and len(scale.ticks) % 2
    return scale.ticks[::2] if crowded else scale.ticks


def _table(shown: Sequence[Point], unit: str) -> ChartTable:
    newest = list(reversed(shown))
    rows = [(f"{_when(point)}{_of(point)}", [format_number(point.value)]) for point in newest[:ROWS]]
    return ChartTable(gettext("When"), [unit], rows, newest_rows_note(ROWS, len(newest)))


def _when(point: Point) -> str:
    return format_date(timezone.localtime(point.at), "d M H:i:s")


def _of(point: Point) -> str:
    return f", {point.what}" if point.what else ""
