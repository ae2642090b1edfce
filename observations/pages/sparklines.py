"""A small line over time: its places are computed here, the mark-up is a template."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils import timezone

from observations.livestats.history import History, Points

WIDTH, HEIGHT, MARGIN = 240, 36, 2
# Between points further apart than this many steps nothing was measured, and nothing is drawn.
GAP_STEPS = 1.5
ROWS = 12


@dataclass(frozen=True)
class Spark:
    """`strokes` and `areas` are the points of lines and of what is under them; one for each piece."""

    sentence: str
    strokes: list[str]
    areas: list[str]
    rows: list[tuple[datetime, str]]
    width: int = WIDTH
    height: int = HEIGHT


def spark_of(
    label: str,
    points: Points,
    history: History | None,
    *,
    text: Callable[[float], str],
    most: float | None = None,
) -> Spark | None:
    """The line of a metric, up to `most` or its own highest value; None where nothing was measured."""
    if not points or history is None:
        return None
    values = [value for _, value in points]
    top = max([*values, most or 0.0]) or 1.0
    pieces = list(_pieces(points, history.step))
    placed = [[_place(point, history, top) for point in piece] for piece in pieces]
    return Spark(
        sentence=(
            f"{label} since {_clock(history.start)}: from {text(min(values))} to {text(max(values))}, "
            f"last {text(values[-1])}"
        ),
        strokes=[" ".join(f"{x},{y}" for x, y in piece) for piece in placed],
        areas=[_area(piece) for piece in placed],
        rows=[(datetime.fromtimestamp(at, UTC), text(value)) for at, value in _few(points)],
    )


def _pieces(points: Points, step: float) -> Iterator[Points]:
    begin = 0
    for index in range(1, len(points)):
        if points[index][0] - points[index - 1][0] > GAP_STEPS * step:
            yield points[begin:index]
            begin = index
    yield points[begin:]


def _place(point: tuple[float, float], history: History, top: float) -> tuple[float, float]:
    begin, end = history.start.timestamp(), history.end.timestamp()
    x = (point[0] - begin) / (end - begin) * WIDTH if end > begin else WIDTH
    y = HEIGHT - MARGIN - point[1] / top * (HEIGHT - 2 * MARGIN)
    return round(x, 1), round(y, 1)


def _area(piece: Sequence[tuple[float, float]]) -> str:
    line = " ".join(f"{x},{y}" for x, y in piece)
    return f"{piece[0][0]},{HEIGHT} {line} {piece[-1][0]},{HEIGHT}"


def _few(points: Points) -> Iterator[tuple[float, float]]:
    """At most ROWS of them, evenly, the last one included."""
    stride = -(-len(points) // ROWS)
    return reversed(points[::-1][::stride])


def _clock(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%d %b %H:%M")
