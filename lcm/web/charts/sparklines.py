"""A small line without axes: how something went, in one glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT, MARGIN = 240, 36, 2
Place = tuple[float, float]


@dataclass(frozen=True)
class Sparkline:
    """`strokes` and `areas` are lines and what is under them, one for each piece; `rows` are its numbers."""

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
    """Values from left to right, up to `most` or their own highest; nothing for fewer than two.

    `span` is what lies at the two ends, else the first and the last point. Between points further apart than
    `gap` nothing was measured, and nothing is drawn.
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
