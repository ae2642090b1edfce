"""Metrics of a Celery worker where no web process of the same machine shows them."""

from __future__ import annotations

import logging
import os

from django.conf import settings
from prometheus_client import CollectorRegistry, multiprocess, start_http_server

from lcm.presence import keep_telling, reached_at
from lcm.supervisor.address import Address

logger = logging.getLogger(__name__)


def serve_worker_metrics() -> None:
    """Answer Prometheus at WORKER_METRICS_BIND; the tasks' processes leave their figures in a folder."""
    bind = settings.CONFIG["WORKER_METRICS_BIND"]
    if not bind:
        return
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        logger.error("WORKER_METRICS_BIND needs PROMETHEUS_MULTIPROC_DIR: tasks run in other processes")
        return
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    address = Address.parse(bind)
    start_http_server(address.port, address.host, registry=registry)
    keep_telling("worker", reached_at(bind))
