"""LCM's own metrics, summed over all processes of a machine when PROMETHEUS_MULTIPROC_DIR is set."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator

from django.db import DatabaseError
from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess
from prometheus_client.core import REGISTRY, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

REQUESTS = Counter("lcm_http_requests_total", "HTTP requests.", ["view", "method", "status"])
REQUEST_SECONDS = Histogram("lcm_http_request_duration_seconds", "Time to answer a request.", ["view"])
TASKS = Counter("lcm_tasks_total", "Background tasks run, by result.", ["task", "result"])
TRANSITIONS = Counter(
    "lcm_session_transitions_total", "Session status transitions.", ["from_status", "to_status"]
)


def active_sessions() -> Iterator[Metric]:
    from lcm.selectors.sessions import active_by_status

    sessions = GaugeMetricFamily("lcm_sessions_active", "Active sessions.", labels=["status"])
    for status, count in active_by_status().items():
        sessions.add_metric([status], count)
    yield sessions


# Functions that read metrics from the database on each scrape; apps add theirs when they are ready.
FLEET_COLLECTORS: list[Callable[[], Iterable[Metric]]] = [active_sessions]


class FleetCollector(Collector):
    """The metrics of all FLEET_COLLECTORS."""

    def collect(self) -> Iterator[Metric]:
        for read in FLEET_COLLECTORS:
            yield from read()


def render_metrics() -> bytes:
    """Return the response body of `/metrics`."""
    registry: CollectorRegistry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    fleet = CollectorRegistry(auto_describe=False)
    fleet.register(FleetCollector())
    try:
        return generate_latest(registry) + generate_latest(fleet)
    except DatabaseError:
        logger.exception("fleet_metrics_failed")
        return generate_latest(registry)


def render_process_metrics() -> bytes:
    """Return the metrics of this process."""
    return generate_latest(REGISTRY)


def mark_process_dead(pid: int) -> None:
    """Drop the live gauges of a process that has ended; its counters stay in the totals."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
