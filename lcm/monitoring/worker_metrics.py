"""Metrics server of a Celery worker, for machines without a web process."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.conf import settings
from prometheus_client import CollectorRegistry, make_wsgi_app, multiprocess

from lcm.monitoring.heartbeats import scrape_address, start_heartbeats
from lcm.monitoring.scrape_access import scrape_refusal
from lcm.supervisor.address import Address

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

logger = logging.getLogger(__name__)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Do not log scrapes."""


def metrics_server(address: Address, registry: CollectorRegistry) -> WSGIServer:
    """Return a bound metrics server with the access rule of `/metrics`; the caller starts it."""
    metrics_app: Any = make_wsgi_app(registry)

    def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if refusal := scrape_refusal(environ):
            status, reason = refusal
            headers = [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")]
            start_response(f"{status.value} {status.phrase}", headers)
            return [reason.encode()]
        body: Iterable[bytes] = metrics_app(environ, start_response)
        return body

    server = (_Server6 if ":" in address.host else _Server)((address.host, address.port), _QuietHandler)
    server.set_app(serve)
    return server


def serve_worker_metrics() -> None:
    """Serve the metrics of all task processes at WORKER_METRICS_BIND, if it is set."""
    bind = settings.CONFIG["WORKER_METRICS_BIND"]
    if not bind:
        return
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        logger.error("WORKER_METRICS_BIND needs PROMETHEUS_MULTIPROC_DIR: tasks run in other processes")
        return
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    address = Address.parse(bind)
    threading.Thread(target=metrics_server(address, registry).serve_forever, daemon=True).start()
    start_heartbeats("worker", scrape_address(bind))
