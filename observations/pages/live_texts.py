"""Texts and figures of live statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.utils import timezone, translation
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from lcm.web.charts.sparklines import Sparkline, sparkline
from lcm.web.wording import core_count_text, duration_text, list_text
from lcm.web.zones import with_zone
from observations.livestats.catalogue import METRICS
from observations.livestats.history import History, Points
from observations.livestats.kernel_stats import MetricValue
from observations.livestats.live_stats import LiveStats
from observations.livestats.states import LiveState
from observations.livestats.totals import total_over_time

GAUGES = {"cpu_util": _("CPU"), "mem": _("Memory"), "disk": _("Disk")}
NETWORK = ("net_rx", "net_tx")
STATE_WORDS = {
    LiveState.OK: _("ok"),
    LiveState.PARTIAL: _("partial"),
    LiveState.STALE: _("stale"),
    LiveState.ABSENT: _("absent"),
    LiveState.FAILED: _("failed"),
    LiveState.NOT_CONFIGURED: _("not configured"),
}
UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
# Thresholds at which a meter changes its colour, as shares of the capacity.
LOW, HIGH = 0.8, 0.93
# Points further apart than this many steps are not connected.
GAP_STEPS = 1.5
ROWS = 12
# Points of a total that the crosshair stops at.
MARKS = 60


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
        return LiveNotice(state, gettext("Not configured"), str(NOT_CONFIGURED))
    if state is LiveState.FAILED:
        old = gettext("The figures below are %(age)s old.") % {"age": age}
        shown = old if age else gettext("There are no earlier figures.")
        title = gettext("Prometheus is not responding")
        return LiveNotice(state, title, f"{_first(stats.problems)}. {shown}")
    if state is LiveState.PARTIAL:
        missing = gettext("Missing: %(parts)s.") % {
            "parts": list_text([part.translated(translation) for part in stats.missing])
        }
        return LiveNotice(state, gettext("Incomplete"), f"{missing} {_first(stats.problems)}.")
    if state is LiveState.STALE:
        old = gettext(
            "The newest figures are %(age)s old. Check that the controller is scraped and the worker is up."
        ) % {"age": age}
        text = old if age else gettext("The age of these figures is unknown.")
        return LiveNotice(state, gettext("Stale"), text)
    if state is LiveState.ABSENT:
        text = gettext("Prometheus has no figures for these nodes yet.")
        return LiveNotice(state, gettext("No figures"), text)
    return None


NOT_CONFIGURED = _(
    "Set PROMETHEUS_URL to the address of a Prometheus that scrapes LCM's controllers; "
    "see docs/monitoring.md."
)


def readings(
    values: Mapping[str, MetricValue],
    lines: Mapping[str, Points],
    history: History | None,
    *,
    is_total: bool = False,
) -> list[MetricReading]:
    """Return CPU, memory, disk and network of one node or of several together.

    Lines of a total can be read with the crosshair.
    """
    gauges = [
        _gauge(name, values.get(name), lines.get(name, ()), history, is_total=is_total) for name in GAUGES
    ]
    both: dict[float, float] = {}
    for name in NETWORK:
        for at, value in lines.get(name, ()):
            both[at] = both.get(at, 0.0) + value
    spark = spark_of(
        gettext("Network"), tuple(sorted(both.items())), history, text=rate_text, is_total=is_total
    )
    return [*gauges, _network(values, spark)]


def lines_together(history: History) -> dict[str, Points]:
    return {name: total_over_time(history.kernels.values(), name) for name in METRICS}


def traffic_text(values: Mapping[str, MetricValue], window: float) -> str:
    """Return text such as `2.1 MB read and 0.4 MB written in 1 min`; empty if unknown."""
    parts = [
        text % {"amount": bytes_text(value.current)}
        for name, text in (
            ("disk_read", gettext("%(amount)s read")),
            ("disk_write", gettext("%(amount)s written")),
        )
        if (value := values.get(name)) is not None and value.current is not None
    ]
    if not parts:
        return ""
    duration = duration_text(timedelta(seconds=window))
    return gettext("%(traffic)s in %(duration)s") % {"traffic": list_text(parts), "duration": duration}


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
    shown = cores_text(value)
    return ngettext("%(count)s core", "%(count)s cores", 1 if shown == "1.00" else 2) % {"count": shown}


def _gauge(
    name: str, value: MetricValue | None, points: Points, history: History | None, *, is_total: bool
) -> MetricReading:
    label, is_cpu = str(GAUGES[name]), METRICS[name].unit == "cores"
    text = cores_text if is_cpu else bytes_text
    most = value.capacity if value else None
    amount = _used_cores if is_cpu else bytes_text
    spark = spark_of(label, points, history, text=amount, most=most, is_total=is_total)
    if value is None or value.current is None:
        return MetricReading(label, "", gettext("unknown"), spark=spark)
    rest = []
    if most is not None:
        capacity = core_count_text(Decimal(str(most))) if is_cpu else bytes_text(most)
        rest.append(gettext("of %(capacity)s") % {"capacity": capacity})
    elif is_cpu:
        rest.append(gettext("cores"))
    if value.pct is not None:
        rest.append(f"{value.pct:.0f}\N{NO-BREAK SPACE}%")
    meter = LiveMeter(value.current, most) if most else None
    return MetricReading(label, text(value.current), ", ".join(rest), meter, spark)


def _network(values: Mapping[str, MetricValue], spark: Sparkline | None) -> MetricReading:
    speeds: Sequence[float | None] = [values[name].rate if name in values else None for name in NETWORK]
    known = [speed for speed in speeds if speed is not None]
    if not known:
        return MetricReading(gettext("Network"), "", gettext("unknown"), spark=spark)
    words = [
        text % {"rate": rate_text(speed)}
        for speed, text in zip(speeds, (gettext("%(rate)s in"), gettext("%(rate)s out")), strict=True)
        if speed is not None
    ]
    return MetricReading(gettext("Network"), rate_text(sum(known)), ", ".join(words), spark=spark)


def _age(moment: datetime | None, now: datetime) -> str:
    return duration_text(max(now - moment, timedelta(0))) if moment else ""


def _first(problems: Sequence[str]) -> str:
    text = problems[0] if problems else gettext("no reason given")
    return text[:1].upper() + text[1:].rstrip(".")


def spark_of(
    label: str,
    points: Points,
    history: History | None,
    *,
    text: Callable[[float], str],
    most: float | None = None,
    is_total: bool = False,
) -> Sparkline | None:
    """Return the sparkline of a metric, scaled to `most` or its maximum; None if nothing was measured."""
    if not points or history is None:
        return None
    values = [value for _, value in points]
    return sparkline(
        points,
        title=gettext("%(label)s since %(start)s: from %(least)s to %(most)s, last %(last)s")
        % {
            "label": label,
            "start": _clock(history.start),
            "least": text(min(values)),
            "most": text(max(values)),
            "last": text(values[-1]),
        },
        span=(history.start.timestamp(), history.end.timestamp()),
        gap=GAP_STEPS * history.step,
        most=most,
        rows=[(datetime.fromtimestamp(at, UTC), text(value)) for at, value in _few(points, ROWS)],
        marks=[
            (at, f"{_clock(datetime.fromtimestamp(at, UTC), seconds=True)}\n{label} {text(value)}")
            for at, value in (_few(points, MARKS) if is_total else ())
        ],
    )


def _few(points: Points, most: int) -> Iterator[tuple[float, float]]:
    """Yield at most this many evenly spaced points, including the last one."""
    stride = -(-len(points) // most)
    return reversed(points[::-1][::stride])


def _clock(moment: datetime, *, seconds: bool = False) -> str:
    local = timezone.localtime(moment)
    return with_zone(local.strftime("%d %b %H:%M:%S" if seconds else "%d %b %H:%M"), local)
