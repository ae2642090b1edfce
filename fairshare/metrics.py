"""Prometheus metrics of usage."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric


def usage_figures() -> Iterator[Metric]:
    """Yield the result of the last usage consistency check."""
    from fairshare.selectors.usage import last_check

    differences = GaugeMetricFamily(
        "lcm_usage_check_differences", "Buckets that differ from their records, in the last comparison."
    )
    checked = GaugeMetricFamily(
        "lcm_usage_check_timestamp_seconds", "Time of the last comparison of records and buckets."
    )
    if (last := last_check()) is not None:
        differences.add_metric([], last.difference_count)
        checked.add_metric([], last.checked_at.timestamp())
    yield from (differences, checked)
