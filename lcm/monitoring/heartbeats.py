"""Heartbeats of web and worker processes, with the address of their metrics."""

from __future__ import annotations

import logging
import socket
import threading
import time

from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from lcm.extensions import Extension
from lcm.supervisor.address import ANY_HOST, Address

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 15.0


def scrape_address(bind: str) -> str:
    """Return the address at which Prometheus reaches a process that listens on `bind`."""
    listening = Address.parse(bind)
    host = settings.CONFIG["METRICS_HOST"]
    if not host:
        host = socket.gethostname() if listening.host in ANY_HOST else listening.host
    return str(Address(host, listening.port))


def send_heartbeat(kind: str, address: str) -> None:
    """Record that a process is running; if the database is down, log a warning."""
    try:
        for effect in Extension.installed().process_heartbeat:
            effect(kind=kind, name=address, address=address, token=None, now=timezone.now())
    except DatabaseError as error:
        logger.warning("heartbeat_failed", extra={"error": str(error)})


def start_heartbeats(kind: str, address: str) -> None:
    """Send heartbeats in a daemon thread."""

    def send_forever() -> None:
        while True:
            send_heartbeat(kind, address)
            close_old_connections()
            time.sleep(INTERVAL_SECONDS)

    threading.Thread(target=send_forever, name="heartbeats", daemon=True).start()
