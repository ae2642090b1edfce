"""Sparklines: small line charts without axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lcm.web.charts.time_axis import Zoom

WIDTH, HEIGHT, MARGIN = 240, 36, 2
Place = tuple[float, float]


@dataclass(frozen=True)
class Sparkline:
    """Data of a sparkline; `strokes` and `areas` have one path per segment, `rows` are the numbers.

    A chart with `marks` has a crosshair, and a time axis if its range is known.
    """

    title: str
    strokes: list[str]
    areas: list[str]
    rows: Sequence[tuple[datetime, str]] = ()
    marks: Sequence[tuple[float, str]] = ()
    zoom: Zoom | None = None
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def ends(self) -> list[datetime]:
        """Return the times at the ends of a line with a crosshair."""
        return (
            [datetime.fromtimestamp(at, UTC) for at in (self.zoom.start, self.zoom.end)] if self.zoom else []
        )


def sparkline(
    points: Sequence[Place],
    *,
    title: str,
    span: tuple[float, float] | None = None,
    gap: float | None = None,
    most: float | None = None,
    rows: Sequence[tuple[datetime, str]] = (),
    marks: Sequence[tuple[float, str]] = (),
) -> Sparkline | None:
    """Return a sparkline scaled to `most` or to the highest value; None for fewer than two values.

    `span` is the time range, by default from the first to the last point. The line breaks between points
    that are more than `gap` apart. `marks` are the titles at some positions, for the crosshair.
    """
    if len(points) < 2:
        return None
    begin, end = span or (points[0][0], points[-1][0])
    top = max([*(value for _, value in points), most or 0.0]) or 1.0
    placed = [
        [_place(point, begin, end, top) for point in piece] for piece in _pieces(points, gap or float("inf"))
    ]
    return Sparkline(
        title=title,
        strokes=[_text(piece) for piece in placed],
        areas=[_area(piece) for piece in placed],
        rows=rows,
        marks=[(_place((at, 0.0), begin, end, top)[0], text) for at, text in marks],
        zoom=Zoom(begin, end) if marks else None,
    )


def _pieces(points: Sequence[Place], gap: float) -> Iterator[Sequence[Place]]:
    begin = 0
    for index in range(1, len(points)):
        if points[index][0] - points[index - 1][0] > gap:
            yield points[begin:index]
            begin = index
    yield points[begin:]


def _place(point: Place, begin: float, end: float, top: float) -> Place:
    x = (point[0] - begin) / (end - begin) * WIDTH if end > begin else WIDTH
    y = HEIGHT - MARGIN - point[1] / top * (HEIGHT - 2 * MARGIN)
    return round(x, 1), round(y, 1)


def _text(piece: Sequence[Place]) -> str:
    """Return the path of a segment; of a single point, a stem from the baseline."""
    points = piece if len(piece) > 1 else [(piece[0][0], float(HEIGHT)), piece[0]]
    return " ".join(f"{x},{y}" for x, y in points)


def _area(piece: Sequence[Place]) -> str:
    return f"{piece[0][0]},{HEIGHT} {_text(piece)} {piece[-1][0]},{HEIGHT}"
