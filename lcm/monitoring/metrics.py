"""LCM's own metrics, summed over all processes of a machine when PROMETHEUS_MULTIPROC_DIR is set."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

from django.db import DatabaseError
from django.utils import timezone
from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess
from prometheus_client.core import REGISTRY, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from lcm.extensions import Extension

logger = logging.getLogger(__name__)

REQUESTS = Counter("lcm_http_requests_total", "HTTP requests.", ["view", "method", "status"])
REQUEST_SECONDS = Histogram("lcm_http_request_duration_seconds", "Time to respond to a request.", ["view"])
TASKS = Counter("lcm_tasks_total", "Background tasks run, by result.", ["task", "result"])
DELIVERY_ATTEMPTS = Counter(
    "lcm_delivery_attempts_total", "Attempts to deliver events, by channel and result.", ["channel", "result"]
)
TRANSITIONS = Counter(
    "lcm_session_transitions_total", "Session status transitions.", ["from_status", "to_status"]
)


def active_sessions() -> Iterator[Metric]:
    from lcm.selectors.sessions import active_by_status

    sessions = GaugeMetricFamily("lcm_sessions_active", "Active sessions.", labels=["status"])
    for status, count in active_by_status().items():
        sessions.add_metric([status], count)
    yield sessions


def delivery_queue() -> Iterator[Metric]:
    from lcm.selectors.deliveries import oldest_event_to_route, queue_length

    count, delivery = queue_length()
    waiting = [moment for moment in (delivery, oldest_event_to_route()) if moment]
    age = (timezone.now() - min(waiting)).total_seconds() if waiting else 0.0
    yield GaugeMetricFamily("lcm_deliveries_pending", "Deliveries that are pending.", count)
    yield GaugeMetricFamily(
        "lcm_delivery_oldest_age_seconds", "Age of the oldest pending delivery or unrouted event.", age
    )


class FleetCollector(Collector):
    """The metrics that apps read from the database."""

    def collect(self) -> Iterator[Metric]:
        for read in Extension.installed().metrics:
            yield from read()


def render_metrics() -> bytes:
    """Return the response body of `/metrics`."""
    registry: CollectorRegistry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)
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
        multiprocess.mark_process_dead(pid)
