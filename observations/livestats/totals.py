"""Totals over the kernels of a session or slot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from observations.livestats.catalogue import METRICS, Metric, MetricKind
from observations.livestats.history import Points
from observations.livestats.kernel_stats import MetricValue


def total(kernels: Iterable[Mapping[str, MetricValue]]) -> dict[str, MetricValue]:
    """Sum the known values; the percentage relates to the capacity of kernels with known use."""
    found = list(kernels)
    return {
        name: _sum(metric, values)
        for name, metric in METRICS.items()
        if (values := [each[name] for each in found if name in each])
    }


def total_over_time(kernels: Iterable[Mapping[str, Points]], metric: str) -> Points:
    """Sum at each time the kernels that have a value then."""
    sums: dict[float, float] = {}
    for each in kernels:
        for at, value in each.get(metric, ()):
            sums[at] = sums.get(at, 0.0) + value
    return tuple(sorted(sums.items()))


def _sum(metric: Metric, values: list[MetricValue]) -> MetricValue:
    current = _added(each.current for each in values)
    against = _added(each.capacity for each in values if each.current is not None)
    return MetricValue(
        current=current,
        capacity=_added(each.capacity for each in values),
        pct=100 * current / against if current is not None and against else None,
        unit=metric.unit,
        rate=None if metric.kind is MetricKind.GAUGE else _added(each.rate for each in values),
        # The kernels may have reached their maxima at different times, so the sum has no meaning.
        max=None,
        avg=_added(each.avg for each in values),
        observed_at=min((each.observed_at for each in values if each.observed_at), default=None),
    )


def _added(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
