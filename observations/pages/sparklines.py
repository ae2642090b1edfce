"""How a metric went since the beginning of its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from django.utils import timezone

from lcm.web.charts.sparklines import Sparkline, sparkline
from observations.livestats.history import History, Points

# Between points further apart than this many steps nothing was measured.
GAP_STEPS = 1.5
ROWS = 12


def spark_of(
    label: str,
    points: Points,
    history: History | None,
    *,
    text: Callable[[float], str],
    most: float | None = None,
) -> Sparkline | None:
    """The line of a metric, up to `most` or its own highest value; None where nothing was measured."""
    if not points or history is None:
        return None
    values = [value for _, value in points]
    return sparkline(
        points,
        title=(
            f"{label} since {_clock(history.start)}: from {text(min(values))} to {text(max(values))}, "
            f"last {text(values[-1])}"
        ),
        span=(history.start.timestamp(), history.end.timestamp()),
        gap=GAP_STEPS * history.step,
        most=most,
        rows=[(datetime.fromtimestamp(at, UTC), text(value)) for at, value in _few(points)],
    )


def _few(points: Points) -> Iterator[tuple[float, float]]:
    """At most ROWS of them, evenly, the last one included."""
    stride = -(-len(points) // ROWS)
    return reversed(points[::-1][::stride])


def _clock(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%d %b %H:%M")
