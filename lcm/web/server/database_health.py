"""Database health. LCM probes the database only if a request has waited longer than usual."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from django.db import connection

from lcm.domain.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Together below the promised response time of 2 s.
PATIENCE_SECONDS = 1.0
PROBE_SECONDS = 0.8
PROBE_STEPS = 16
RECOVERY_SECONDS = 0.5


class DatabaseHealth:
    """The state of the database as this process knows it.

    A probe opens its own connection when a request has waited for a second. After a failed probe the database
    counts as unavailable until a later probe succeeds.
    """

    def __init__(self) -> None:
        self._probe: asyncio.Task[bool] | None = None
        self._recovery: asyncio.Task[None] | None = None
        self._repair: asyncio.Task[None] | None = None

    @property
    def is_unavailable(self) -> bool:
        return _is_running(self._recovery)

    async def answers(self) -> bool:
        """Return whether the database responds; concurrent callers share one probe."""
        if self.is_unavailable:
            return False
        if self._probe is None or self._probe.done():
            self._probe = _start(self._check())
        return await asyncio.shield(self._probe)

    def repair_pool_soon(self) -> None:
        """Replace broken pooled connections, after a request used one."""
        if not self.is_unavailable and not _is_running(self._repair):
            self._repair = _start(self._repair_pool())

    async def _check(self) -> bool:
        problem = await probe_database()
        if problem:
            logger.error("database_unavailable", extra={"problem": problem})
            self._recovery = _start(self._recover())
        return not problem

    async def _recover(self) -> None:
        while await probe_database():
            await asyncio.sleep(RECOVERY_SECONDS)
        await asyncio.to_thread(_check_pool)
        logger.warning("database_recovered")

    async def _repair_pool(self) -> None:
        if await self.answers():
            await asyncio.to_thread(_check_pool)


health = DatabaseHealth()


async def while_database_answers(start: Callable[[], Awaitable[T]]) -> T:
    """Return the result of the started work; raise DatabaseUnavailable as soon as a probe fails.

    Work that has not begun by then is cancelled. Work in a thread cannot be stopped; its result is dropped.
    """
    if health.is_unavailable:
        raise DatabaseUnavailable
    work = asyncio.ensure_future(start())
    while not work.done():
        await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
        if not work.done() and not await health.answers() and not work.done():
            work.cancel()
            raise DatabaseUnavailable
    return work.result()


async def probe_database() -> str:
    """Connect to PostgreSQL and return the error, if any. SQLite is always available.

    The time limit is counted in steps of the event loop: if busy request threads block the loop, the probe
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
    return f"no answer within {PROBE_SECONDS} s"


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
    left_out = ("cursor_factory", "context", "connect_timeout")
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in left_out}


def _check_pool() -> None:
    """Make the connection pool, if any, drop broken connections."""
    pool = getattr(connection, "pool", None)
    if pool is not None:
        pool.open()
        pool.check()


def _is_running(task: asyncio.Task[Any] | None) -> bool:
    return task is not None and not task.done()


def _start(work: Any) -> asyncio.Task[Any]:
    """Start a task in its own context, because it may outlive the request that needed it."""
    return asyncio.create_task(work, context=contextvars.Context())
