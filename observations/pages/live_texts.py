"""Texts and figures of live statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.utils import timezone

from lcm.web.charts.sparklines import Sparkline, sparkline
from lcm.web.wording import core_count_text, duration_text
from observations.livestats.catalogue import METRICS
from observations.livestats.history import History, Points
from observations.livestats.kernel_stats import MetricValue
from observations.livestats.live_stats import LiveStats
from observations.livestats.states import LiveState
from observations.livestats.totals import total_over_time

GAUGES = ("cpu_util", "mem", "disk")
NETWORK = ("net_rx", "net_tx")
UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
# Thresholds at which a meter changes its colour, as shares of the capacity.
LOW, HIGH = 0.8, 0.93
# Points further apart than this many steps are not connected.
GAP_STEPS = 1.5
ROWS = 12


@dataclass(frozen=True)
class LiveMeter:
    value: float
    most: float

    @property
    def low(self) -> float:
        return self.most * LOW

    @property
    def high(self) -> float:
        return self.most * HIGH


@dataclass(frozen=True)
class MetricReading:
    """A figure with its label and an explanation."""

    label: str
    value: str
    rest: str
    meter: LiveMeter | None = None
    spark: Sparkline | None = None


@dataclass(frozen=True)
class LiveNotice:
    """A problem with the figures and what to do; `state` sets word, shape and colour."""

    state: str
    word: str
    text: str


def notice_of(stats: LiveStats, now: datetime) -> LiveNotice | None:
    """Return the notice to show; None if there is no problem."""
    state, age = stats.state, _age(stats.observed_at, now)
    if state is LiveState.NOT_CONFIGURED:
        return LiveNotice(state, "Not configured", NOT_CONFIGURED)
    if state is LiveState.FAILED:
        shown = f" The figures below are {age} old." if age else " There are no earlier figures."
        return LiveNotice(state, "Prometheus is not responding", f"{_first(stats.problems)}.{shown}")
    if state is LiveState.PARTIAL:
        missing = " and ".join(stats.missing)
        return LiveNotice(state, "Incomplete", f"Missing: {missing}. {_first(stats.problems)}.")
    if state is LiveState.STALE:
        text = f"The newest figures are {age} old. Check that the controller is scraped and the worker is up."
        return LiveNotice(state, "Stale", text if age else "The age of these figures is unknown.")
    if state is LiveState.ABSENT:
        return LiveNotice(state, "No figures", "Prometheus has no figures for these nodes yet.")
    return None


NOT_CONFIGURED = (
    "Set PROMETHEUS_URL to the address of a Prometheus that scrapes LCM's controllers; "
    "see docs/monitoring.md."
)


def readings(
    values: Mapping[str, MetricValue], lines: Mapping[str, Points], history: History | None
) -> list[MetricReading]:
    """Return CPU, memory, disk and network of one node or of several together."""
    gauges = [_gauge(name, values.get(name), lines.get(name, ()), history) for name in GAUGES]
    both: dict[float, float] = {}
    for name in NETWORK:
        for at, value in lines.get(name, ()):
            both[at] = both.get(at, 0.0) + value
    spark = spark_of("Network", tuple(sorted(both.items())), history, text=rate_text)
    return [*gauges, _network(values, spark)]


def lines_together(history: History) -> dict[str, Points]:
    return {name: total_over_time(history.kernels.values(), name) for name in METRICS}


def traffic_text(values: Mapping[str, MetricValue], window: float) -> str:
    """Return text such as `2.1 MB read and 0.4 MB written in 1 min`; empty if unknown."""
    parts = [
        f"{bytes_text(value.current)} {word}"
        for name, word in (("disk_read", "read"), ("disk_write", "written"))
        if (value := values.get(name)) is not None and value.current is not None
    ]
    return f"{' and '.join(parts)} in {duration_text(timedelta(seconds=window))}" if parts else ""


def bytes_text(value: float) -> str:
    power = 0
    while abs(value) >= 1000 and power < len(UNITS) - 1:
        value, power = value / 1024, power + 1
    return f"{value:,.{0 if power == 0 or value >= 100 else 1}f} {UNITS[power]}"


def rate_text(value: float) -> str:
    return f"{bytes_text(value)}/s"


def cores_text(value: float) -> str:
    return f"{value:,.2f}"


def _used_cores(value: float) -> str:
    """Return cores with their unit, for places without a label."""
    return f"{cores_text(value)} {'core' if cores_text(value) == '1.00' else 'cores'}"


def _gauge(name: str, value: MetricValue | None, points: Points, history: History | None) -> MetricReading:
    metric = METRICS[name]
    is_cpu = metric.unit == "cores"
    text = cores_text if is_cpu else bytes_text
    most = value.capacity if value else None
    spark = spark_of(metric.label, points, history, text=_used_cores if is_cpu else bytes_text, most=most)
    if value is None or value.current is None:
        return MetricReading(metric.label, "", "unknown", spark=spark)
    rest = []
    if most is not None:
        rest.append(f"of {core_count_text(Decimal(str(most)))}" if is_cpu else f"of {bytes_text(most)}")
    elif is_cpu:
        rest.append("cores")
    if value.pct is not None:
        rest.append(f"{value.pct:.0f}\N{NO-BREAK SPACE}%")
    meter = LiveMeter(value.current, most) if most else None
    return MetricReading(metric.label, text(value.current), ", ".join(rest), meter, spark)


def _network(values: Mapping[str, MetricValue], spark: Sparkline | None) -> MetricReading:
    speeds: Sequence[float | None] = [values[name].rate if name in values else None for name in NETWORK]
    known = [speed for speed in speeds if speed is not None]
    if not known:
        return MetricReading("Network", "", "unknown", spark=spark)
    words = [
        f"{rate_text(speed)} {word}"
        for speed, word in zip(speeds, ("in", "out"), strict=True)
        if speed is not None
    ]
    return MetricReading("Network", rate_text(sum(known)), ", ".join(words), spark=spark)


def _age(moment: datetime | None, now: datetime) -> str:
    return duration_text(max(now - moment, timedelta(0))) if moment else ""


def _first(problems: Sequence[str]) -> str:
    text = problems[0] if problems else "no reason given"
    return text[:1].upper() + text[1:].rstrip(".")


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
