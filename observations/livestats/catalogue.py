"""The queried metrics and how each is read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

UTILIZATION = "lcm_kernel_utilization"
BYTES = "lcm_kernel_bytes_total"
OBSERVED_AT = "lcm_kernel_observed_timestamp_seconds"


class MetricKind(StrEnum):
    """How a metric is read: current value, growth over the window, or rate."""

    GAUGE = "gauge"
    DIFF = "diff"
    RATE = "rate"


@dataclass(frozen=True)
class Metric:
    """A metric; `capacity` names the metric whose capacity limits it, None if it is unlimited."""

    name: str
    kind: MetricKind
    unit: str
    capacity: str | None = None


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("cpu_util", MetricKind.GAUGE, "cores", "cpu_util"),
        Metric("mem", MetricKind.GAUGE, "bytes", "mem"),
        Metric("disk", MetricKind.GAUGE, "bytes", "disk"),
        Metric("disk_read", MetricKind.DIFF, "bytes"),
        Metric("disk_write", MetricKind.DIFF, "bytes"),
        Metric("net_rx", MetricKind.RATE, "bytes/s"),
        Metric("net_tx", MetricKind.RATE, "bytes/s"),
    )
}


def names(*kinds: MetricKind) -> list[str]:
    """Return the names of metrics of these kinds, in catalogue order."""
    return [metric.name for metric in METRICS.values() if metric.kind in kinds]
