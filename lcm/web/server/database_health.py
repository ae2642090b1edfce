"""Database health of a process. LCM probes the database only if a request has waited longer than usual.

Nothing can stop a thread that waits for a silent PostgreSQL. So the monitor thread breaks the connections
that requests wait for, and each of these requests ends with a database error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, close_old_connections, connection, connections

from lcm.domain.errors import DatabaseUnavailable
from lcm.web.error_pages import DATABASE_ERRORS

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Together below the promised response time of 2 s.
PATIENCE_SECONDS = 0.7
CHECK_SECONDS = 0.1
PROBE_SECONDS = 0.8
PROBE_STEPS = 16
RECOVERY_SECONDS = 0.5


@dataclass(frozen=True)
class DatabaseUse:
    """Work that may wait for the database, and the Django connection of its thread."""

    since: float
    connection: Any


class DatabaseHealth:
    """The state of the database as this process knows it.

    A probe opens its own connection when work has waited for `PATIENCE_SECONDS`. After a failed probe the
    database counts as unavailable until a later probe succeeds.
    """

    def __init__(self) -> None:
        self.is_unavailable = False
        self._uses: dict[object, DatabaseUse] = {}
        self._lock = threading.Lock()
        self._monitor: threading.Thread | None = None
        self._is_suspect = False
        self._probed_at = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While the block runs, end its database calls if the database does not respond."""
        self._start_monitor()
        key = object()
        with self._lock:
            self._uses[key] = DatabaseUse(time.monotonic(), connections[DEFAULT_DB_ALIAS])
        try:
            yield
        finally:
            with self._lock:
                del self._uses[key]

    def report_error(self) -> None:
        """Probe the database soon, and replace broken pooled connections, after a request failed."""
        self._is_suspect = True

    def _start_monitor(self) -> None:
        if self._monitor is None:
            with self._lock:
                if self._monitor is None:
                    self._monitor = threading.Thread(target=self._run, name="database-health", daemon=True)
                    self._monitor.start()

    def _run(self) -> None:
        while True:
            time.sleep(CHECK_SECONDS)
            try:
                if self._is_suspect or self._is_waiting():
                    self._check()
            except Exception:
                logger.exception("database_check_failed")

    def _is_waiting(self) -> bool:
        with self._lock:
            oldest = min((use.since for use in self._uses.values()), default=None)
        return oldest is not None and time.monotonic() - max(oldest, self._probed_at) > PATIENCE_SECONDS

    def _check(self) -> None:
        was_suspect, self._is_suspect = self._is_suspect, False
        problem = asyncio.run(probe_database())
        self._probed_at = time.monotonic()
        if problem:
            logger.error("database_unavailable", extra={"problem": problem})
            self.is_unavailable = True
            self._wait_for_recovery()
            self.is_unavailable = False
            logger.warning("database_recovered")
        elif was_suspect:
            _check_pool()

    def _wait_for_recovery(self) -> None:
        """Interrupt all database calls until the database responds."""
        while True:
            _close_pool()
            with self._lock:
                for use in self._uses.values():
                    _break_connection(use.connection)
            time.sleep(RECOVERY_SECONDS)
            if not asyncio.run(probe_database()):
                _check_pool()
                return


health = DatabaseHealth()


async def in_database_thread(work: Callable[[], T]) -> T:
    """Return the result of work that runs in a thread; raise DatabaseUnavailable if the database is down."""
    if health.is_unavailable:
        raise DatabaseUnavailable
    return await asyncio.to_thread(_use_database, work)


def _use_database(work: Callable[[], T]) -> T:
    if health.is_unavailable:
        raise DatabaseUnavailable
    try:
        with health.watched():
            return work()
    except DATABASE_ERRORS as error:
        health.report_error()
        raise DatabaseUnavailable from error
    finally:
        close_old_connections()


async def probe_database() -> str:
    """Connect to PostgreSQL and return the error, if any. SQLite is always available.

    The time limit is counted in steps of the event loop: if busy request threads delay the loop, the probe
    gets more time, and a database that responds is not reported as unavailable.
    """
    if connection.vendor != "postgresql":
        return ""
    connecting = asyncio.create_task(_connect())
    for _ in range(PROBE_STEPS):
        await asyncio.wait({connecting}, timeout=PROBE_SECONDS / PROBE_STEPS)
        if connecting.done():
            return connecting.result()
    connecting.cancel()
    return f"no response within {PROBE_SECONDS} s"


async def _connect() -> str:
    import psycopg

    try:
        probe = await psycopg.AsyncConnection.connect(**_probe_parameters())
        await probe.close()
    except (psycopg.Error, OSError) as error:
        return str(error).strip().split("\n")[0]
    return ""


def _probe_parameters() -> dict[str, Any]:
    """Return the parameters of Django's connections with the probe's own time limit."""
    excluded = ("cursor_factory", "context", "connect_timeout")
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in excluded}


def _check_pool() -> None:
    """Make the connection pool, if any, drop broken connections."""
    database: Any = connections[DEFAULT_DB_ALIAS]
    pool = getattr(database, "pool", None)
    if pool is not None:
        pool.open()
        pool.check()


def _close_pool() -> None:
    """Fail the requests that wait for a pooled connection. Django creates a new pool when one is needed."""
    database: Any = connections[DEFAULT_DB_ALIAS]
    pool = getattr(database, "pool", None)
    if pool is not None:
        # Without waiting for the pool's threads, which may wait for the database themselves.
        pool.close(timeout=0)
        database.close_pool()


def _break_connection(database: Any) -> None:
    """Shut down the socket of a thread's connection, so that its call ends with a database error."""
    import psycopg

    driver = database.connection
    if not isinstance(driver, psycopg.Connection):
        return
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(driver.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)
