"""Scatter charts over time with reference lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from lcm.web.charts.scales import Scale, places_along, scale_over, times_along
from lcm.web.charts.tables import ChartTable, newest_rows_note
from lcm.web.charts.time_axis import Zoom
from lcm.web.zones import with_zone

WIDTH, HEIGHT = 334, 216
LEFT, RIGHT, TOP, BOTTOM = 38, 228, 24, 192
DOTS_LEFT, DOTS_RIGHT = LEFT + 5, RIGHT - 5
LABEL_GAP = 14
ROWS = 100


@dataclass(frozen=True)
class ChartDot:
    """One data point; `kind` is `dot`, `over` (red, with a link) or `out` (a cross)."""

    at: datetime
    value: float
    name: str
    kind: str = "dot"
    description: str = ""
    url: str = ""


@dataclass(frozen=True)
class DotMark:
    x: float
    y: float
    kind: str
    title: str
    url: str


@dataclass(frozen=True)
class ReferenceLine:
    """A horizontal reference line with its label."""

    kind: str
    y: float
    label: str
    label_y: float


@dataclass(frozen=True)
class DotChart:
    """Data of a scatter chart; dots and marks are rendered already, as there may be thousands."""

    grid: list[tuple[float, str]]
    times: list[tuple[float, str, str]]
    lines: list[ReferenceLine]
    marks: list[DotMark]
    dots: SafeString
    band: tuple[float, float] | None
    table: ChartTable
    unit: str
    # Times of the edges of the picture, for zooming; None if all dots have the same time.
    zoom: Zoom | None = None
    # The start of the axis, if it is not zero.
    axis_start: str = ""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    inner_width: int = RIGHT - LEFT
    middle: int = (LEFT + RIGHT) // 2
    labels_x: int = RIGHT + 6
    ticks_x: int = LEFT - 6
    times_y: int = HEIGHT - 6
    # A zigzag below the start of the lowest line.
    axis_break: str = f"M{LEFT} {BOTTOM + 4}l3 -3 4 5 4 -5 3 3"

    @property
    def role(self) -> str:
        """Return `img`, or `group` if the chart contains links, so that screen readers can reach them."""
        return "group" if any(mark.url for mark in self.marks) else "img"

    @property
    def drawn_marks(self) -> SafeString:
        return _joined(_cross(mark) if mark.kind == "out" else _link(mark) for mark in self.marks)


def dot_chart(
    dots: Sequence[ChartDot],
    levels: Mapping[str, float],
    *,
    text: Callable[[float], str],
    with_unit: Callable[[float], str],
    label: Callable[[str, float], str],
    unit: str,
    least: float,
    band: tuple[float, float] | None = None,
) -> DotChart:
    """Return a scatter chart; `levels` are reference lines by kind, `band` is shaded.

    `text` formats a value without its unit, `with_unit` with it, and `label` the label of a reference line.
    """
    scale = scale_over([*levels.values(), *(dot.value for dot in dots)], bottom=BOTTOM, top=TOP, least=least)
    marks = _marks(dots, scale, with_unit)
    edges = sorted(scale.place(value) for value in band) if band else None
    return DotChart(
        grid=[(scale.place(tick), text(tick)) for tick in scale.ticks],
        times=times_along([dot.at for dot in dots], LEFT, RIGHT),
        lines=_lines(levels, scale, label),
        marks=[mark for mark in marks if mark.kind != "dot"],
        dots=_joined(_circle(mark) for mark in marks if mark.kind == "dot"),
        band=(edges[0], round(edges[1] - edges[0], 1)) if edges else None,
        table=_table(dots, text, unit),
        unit=unit,
        zoom=_zoom([dot.at for dot in dots]),
        axis_start=text(scale.low) if scale.is_broken else "",
    )


def _zoom(moments: Sequence[datetime]) -> Zoom | None:
    """Return the times at the edges of the picture, which is wider than the part with the dots."""
    if not moments or min(moments) == max(moments):
        return None
    first, last = min(moments).timestamp(), max(moments).timestamp()
    per_unit = (last - first) / (DOTS_RIGHT - DOTS_LEFT)
    return Zoom(first - DOTS_LEFT * per_unit, last + (WIDTH - DOTS_RIGHT) * per_unit)


def _lines(
    levels: Mapping[str, float], scale: Scale, label: Callable[[str, float], str]
) -> list[ReferenceLine]:
    """Return the reference lines with overlapping labels moved apart, in order."""
    kinds = list(levels)
    order = sorted(kinds, key=lambda kind: (-levels[kind], kinds.index(kind)))
    places: list[float] = []
    for kind in order:
        preferred = scale.place(levels[kind]) + 4
        places.append(max(preferred, places[-1] + LABEL_GAP) if places else preferred)
    overflow = max(places[-1] - BOTTOM - 4, 0) if places else 0
    return [
        ReferenceLine(kind, scale.place(levels[kind]), label(kind, levels[kind]), round(place - overflow, 1))
        for kind, place in zip(order, places, strict=True)
    ]


def _marks(dots: Sequence[ChartDot], scale: Scale, with_unit: Callable[[float], str]) -> list[DotMark]:
    marks = []
    for x, dot in zip(places_along([dot.at for dot in dots], DOTS_LEFT, DOTS_RIGHT), dots, strict=True):
        title = f"{_when(dot)}\n{dot.name}: {with_unit(dot.value)}{_suffix(dot)}"
        marks.append(DotMark(x, scale.place(dot.value), dot.kind, title, dot.url))
    return marks


def _joined(parts: Iterable[str]) -> SafeString:
    """Join markup; the numbers are computed here and the texts are escaped already."""
    return mark_safe("".join(parts))  # noqa: S308


def _circle(mark: DotMark) -> str:
    title = escape(mark.title)
    return f'<circle class="dot" cx="{mark.x}" cy="{mark.y}" r="2.75"><title>{title}</title></circle>'


def _cross(mark: DotMark) -> str:
    place = f"translate({mark.x} {mark.y})"
    return (
        f'<g data-x="{mark.x}"><title>{escape(mark.title)}</title>'
        f'<path class="dot-excluded" transform="{place}" d="m-3-3 6 6m0-6-6 6"/></g>'
    )


def _link(mark: DotMark) -> str:
    title = escape(mark.title)
    place = f'cx="{mark.x}" cy="{mark.y}" r="3.5"'
    circle = f'<circle class="dot dot-exceeding" {place}><title>{title}</title></circle>'
    label = title.replace("\n", ", ")
    return f'<a href="{escape(mark.url)}" aria-label="{label}">{circle}</a>'


def _table(dots: Sequence[ChartDot], text: Callable[[float], str], unit: str) -> ChartTable:
    newest = sorted(dots, key=lambda dot: dot.at, reverse=True)
    rows = [(f"{dot.name}, {_when(dot)}{_suffix(dot)}", [text(dot.value)]) for dot in newest[:ROWS]]
    note = newest_rows_note(ROWS, len(newest))
    return ChartTable(gettext("Session"), [unit], rows, note)


def _when(dot: ChartDot) -> str:
    local = timezone.localtime(dot.at)
    return with_zone(format_date(local, "d M H:i"), local)


def _suffix(dot: ChartDot) -> str:
    return f", {dot.description}" if dot.description else ""
