"""Sparklines: small line charts without axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT, MARGIN = 240, 36, 2
Place = tuple[float, float]


@dataclass(frozen=True)
class Sparkline:
    """Data of a sparkline; `strokes` and `areas` have one path per segment, `rows` are the numbers."""

    title: str
    strokes: list[str]
    areas: list[str]
    rows: Sequence[tuple[datetime, str]] = ()
    width: int = WIDTH
    height: int = HEIGHT


def sparkline(
    points: Sequence[Place],
    *,
    title: str,
    span: tuple[float, float] | None = None,
    gap: float | None = None,
    most: float | None = None,
    rows: Sequence[tuple[datetime, str]] = (),
) -> Sparkline | None:
    """Return a sparkline scaled to `most` or to the highest value; None for fewer than two values.

    `span` is the time range, by default from the first to the last point. The line breaks between points
    that are more than `gap` apart.
    """
    if len(points) < 2:
        return None
    begin, end = span or (points[0][0], points[-1][0])
    top = max([*(value for _, value in points), most or 0.0]) or 1.0
    placed = [
        [_place(point, begin, end, top) for point in piece] for piece in _pieces(points, gap or float("inf"))
    ]
    return Sparkline(title, [_text(piece) for piece in placed], [_area(piece) for piece in placed], rows)


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
    return " ".join(f"{x},{y}" for x, y in piece)


def _area(piece: Sequence[Place]) -> str:
    return f"{piece[0][0]},{HEIGHT} {_text(piece)} {piece[-1][0]},{HEIGHT}"
