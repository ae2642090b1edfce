"""Merge the samples of three queries into statistics per kernel, independent of their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from observations.livestats.catalogue import METRICS, MetricKind
from observations.livestats.promql import AVG, MAX, NOW, SEEN
from observations.livestats.responses import SeriesSample, kernel_of
from observations.livestats.states import LiveState

# The quantity of a sample: a metric's current value, capacity, percent, maximum, mean, growth or rate.
Figure = tuple[str, str]


@dataclass(frozen=True)
class MetricValue:
    """A metric of a kernel.

    `current` is the value to show: a gauge's value, a counter's growth over the window, or its rate. `rate`
    is the growth per second of a counter.
    """

    current: float | None
    capacity: float | None
    pct: float | None
    unit: str
    rate: float | None
    max: float | None
    avg: float | None
    observed_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class KernelStats:
    """Statistics of a kernel and their state."""

    state: LiveState
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    observed_at: datetime | None = None


@dataclass(frozen=True)
class MergedSamples:
    """Figures by kernel, and the number of unusable samples."""

    metrics: dict[str, dict[str, MetricValue]]
    observed_at: dict[str, datetime]
    dropped: int


def merge(samples: Iterable[SeriesSample], *, window: float) -> MergedSamples:
    """Merge samples; of duplicates (two controllers or two scrapes) the newest reading counts."""
    usable: dict[str, list[tuple[str, Figure, float]]] = {}
    dropped = 0
    for sample in samples:
        labels = sample.labels
        kernel = kernel_of(labels)
        figure = _figure(labels.get("metric"), labels.get("value_type"), labels.get("stat"))
        if kernel is None or figure is None:
            dropped += 1
            continue
        usable.setdefault(kernel, []).append((labels.get("instance", ""), figure, sample.value))
    metrics, observed = {}, {}
    for kernel, found in usable.items():
        figures = _newest(found)
        seen = figures.pop(("", SEEN), None)
        if seen is not None and (moment := _moment(seen)) is not None:
            observed[kernel] = moment
        metrics[kernel] = _values(figures, window, observed.get(kernel))
    return MergedSamples(metrics, observed, dropped)


@lru_cache(maxsize=1_000)
def _figure(name: str | None, value_type: str | None, stat: str | None) -> Figure | None:
    """Return what a sample measures; None if its labels do not identify a metric of the catalogue."""
    if stat == SEEN:
        return "", SEEN
    metric = METRICS.get(name or "")
    if metric is None:
        return None
    if metric.kind is not MetricKind.GAUGE:
        return (metric.name, metric.kind.value) if stat is None else None
    if stat == NOW and value_type in ("current", "capacity", "pct"):
        return metric.name, value_type
    return (metric.name, stat) if stat in (MAX, AVG) and value_type == "current" else None


def _newest(found: list[tuple[str, Figure, float]]) -> dict[Figure, float]:
    """Return one value per figure, from the source read last; ties are decided by name."""
    read_at: dict[str, float] = {}
    for source, figure, value in found:
        if figure == ("", SEEN):
            read_at[source] = max(value, read_at.get(source, value))
    last = sorted(found, key=lambda each: (read_at.get(each[0], float("-inf")), each[0], each[2]))
    return {figure: value for _, figure, value in last}


def _values(
    figures: Mapping[Figure, float], window: float, observed_at: datetime | None
) -> dict[str, MetricValue]:
    values = {}
    for metric in METRICS.values():
        if metric.kind is MetricKind.GAUGE:
            current = figures.get((metric.name, "current"))
            rate = None
        else:
            current = figures.get((metric.name, metric.kind.value))
            rate = current if metric.kind is MetricKind.RATE or current is None else current / window
        capacity = figures.get((metric.capacity, "capacity")) if metric.capacity else None
        if current is None and capacity is None:
            continue
        values[metric.name] = MetricValue(
            current=current,
            capacity=capacity,
            pct=_percent(figures.get((metric.name, "pct")), current, capacity),
            unit=metric.unit,
            rate=rate,
            max=figures.get((metric.name, MAX)),
            avg=figures.get((metric.name, AVG)),
            observed_at=observed_at,
        )
    return values


def _percent(exported: float | None, current: float | None, capacity: float | None) -> float | None:
    """Return the exporter's percentage, else compute it from the capacity."""
    if exported is not None:
        return exported
    return 100 * current / capacity if current is not None and capacity else None


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
