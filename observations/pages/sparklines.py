"""Sparklines of live metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from django.utils import timezone

from lcm.web.charts.sparklines import Sparkline, sparkline
from observations.livestats.history import History, Points

# Points further apart than this many steps are not connected.
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
    """Return the sparkline of a metric, scaled to `most` or its maximum; None if nothing was measured."""
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
    """Yield at most ROWS evenly spaced points, including the last one."""
    stride = -(-len(points) // ROWS)
    return reversed(points[::-1][::stride])


def _clock(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%d %b %H:%M")
