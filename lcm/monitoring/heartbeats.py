"""Where the processes of LCM can be scraped: each says so every while."""

from __future__ import annotations

import logging
import socket
import threading
import time

from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from lcm.events.signals import process_heartbeat
from lcm.supervisor.address import ANY_HOST, Address

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 15.0


def scrape_address(bind: str) -> str:
    """The address under which others reach what listens here."""
    listening = Address.parse(bind)
    host = settings.CONFIG["METRICS_HOST"]
    if not host:
        host = socket.gethostname() if listening.host in ANY_HOST else listening.host
    return str(Address(host, listening.port))


def send_heartbeat(kind: str, address: str) -> None:
    """Say once that a process of this kind is there; should the database be away, the next time will do."""
    try:
        process_heartbeat.send(
            sender=None, kind=kind, name=address, address=address, token=None, now=timezone.now()
        )
    except DatabaseError as error:
        logger.warning("presence_not_told", extra={"error": str(error)})


def start_heartbeats(kind: str, address: str) -> None:
    """Say so from now on, in a thread that ends with the process."""

    def go_on() -> None:
        while True:
            send_heartbeat(kind, address)
            close_old_connections()
            time.sleep(INTERVAL_SECONDS)

    threading.Thread(target=go_on, name="presence", daemon=True).start()
