"""One chart of each kind, for tests of the chart templates."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from lcm.domain.lifecycle import SessionStatus
from lcm.web.charts.bars import Share, share_bar
from lcm.web.charts.columns import ByDay, stacked
from lcm.web.charts.dots import ChartDot, dot_chart
from lcm.web.charts.points import Point, point_chart
from lcm.web.charts.series import Series
from lcm.web.charts.sparklines import sparkline
from lcm.web.charts.time_axis import TimeAxis
from lcm.web.charts.topology import picture_of

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def sample_charts() -> dict[str, Any]:
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(14)]
    series = [Series("academy", [float(n % 5 * 20) for n in range(14)]), Series("research", [30.0] * 14)]
    waves = [120 + (number * 37) % 90 for number in range(30)]
    nodes = [
        {"id": name, "label": name, "node_definition": "iosv", "x": x, "y": y}
        for name, x, y in (("r1", 0, 0), ("r2", 100, 40), ("host", 200, 0))
    ]
    dots = [
        ChartDot(NOON + timedelta(hours=number), 3 + number % 4, f"Session {number}") for number in range(11)
    ]
    dots.append(
        ChartDot(NOON + timedelta(hours=11), 7, "Session 11", "over", "above the proposal", "#g-charts")
    )
    counts = zip(SessionStatus, (4, 2, 1, 3, 20), strict=False)
    return {
        "bar": share_bar([Share(status.label, count, status) for status, count in counts]),
        "column_chart": stacked(ByDay(days, series), unit="core-hours"),
        "point_chart": point_chart(
            [Point(NOON + timedelta(minutes=number), value) for number, value in enumerate(waves)],
            axis=TimeAxis(NOON, NOON + timedelta(hours=1)),
            title="Duration of ticks",
            unit="ms",
        ),
        "spark": sparkline(list(enumerate(waves)), title="The last 30 ticks"),
        "dot_chart": dot_chart(
            dots,
            {"current": 8, "proposal": 5.5, "p95": 6, "max": 7},
            text=lambda value: f"{value:g}",
            with_unit=lambda value: f"{value:g} cores",
            label=lambda kind, value: f"{kind} {value:g}",
            unit="cores",
            least=1,
            band=(8, 5.5),
        ),
        "picture": picture_of(nodes, [{"n1": "r1", "n2": "r2"}, {"n1": "r2", "n2": "host"}]),
    }
