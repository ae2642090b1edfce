"""Whether the database answers. LCM probes it only if a request has waited longer than usual."""

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

# Together less than the 2 s within which LCM promises an answer.
PATIENCE_SECONDS = 1.0
PROBE_SECONDS = 0.8
PROBE_STEPS = 16
RECOVERY_SECONDS = 0.5


class DatabaseHealth:
    """The state of the database, as far as this process knows it.

    A probe is a connection of its own, made when a request has waited for a second. After a failed probe the
    database is away until a later probe succeeds.
    """

    def __init__(self) -> None:
        self._probe: asyncio.Task[bool] | None = None
        self._recovery: asyncio.Task[None] | None = None
        self._repair: asyncio.Task[None] | None = None

    @property
    def is_away(self) -> bool:
        return _is_running(self._recovery)

    async def answers(self) -> bool:
        """Return whether the database answers; callers that ask at the same time share one probe."""
        if self.is_away:
            return False
        if self._probe is None or self._probe.done():
            self._probe = _start(self._look())
        return await asyncio.shield(self._probe)

    def repair_pool_soon(self) -> None:
        """Replace pooled connections that broke, after a request met one."""
        if not self.is_away and not _is_running(self._repair):
            self._repair = _start(self._repair_pool())

    async def _look(self) -> bool:
        problem = await probe_database()
        if problem:
            logger.error("database_away", extra={"problem": problem})
            self._recovery = _start(self._recover())
        return not problem

    async def _recover(self) -> None:
        while await probe_database():
            await asyncio.sleep(RECOVERY_SECONDS)
        await asyncio.to_thread(_check_pool)
        logger.warning("database_back")

    async def _repair_pool(self) -> None:
        if await self.answers():
            await asyncio.to_thread(_check_pool)


health = DatabaseHealth()


async def while_database_answers(start: Callable[[], Awaitable[T]]) -> T:
    """Return the result of the started work; raise DatabaseAway as soon as the database is known to be away.

    Work that has not begun by then is cancelled. Work in a thread cannot be stopped; its result is dropped.
    """
    if health.is_away:
        raise DatabaseUnavailable
    work = asyncio.ensure_future(start())
    while not work.done():
        await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
        if not work.done() and not await health.answers() and not work.done():
            work.cancel()
            raise DatabaseUnavailable
    return work.result()


async def probe_database() -> str:
    """Connect to PostgreSQL and return what went wrong, or nothing. SQLite is always there.

    The time limit is counted in steps of the event loop: if busy request threads keep the loop from running,
    the probe gets more time, and a database that answers is not taken for one that is away.
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
    """The parameters of Django's connections; the probe has a time limit of its own."""
    left_out = ("cursor_factory", "context", "connect_timeout")
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in left_out}


def _check_pool() -> None:
    """Have the pool, if there is one, drop connections that broke."""
    pool = getattr(connection, "pool", None)
    if pool is not None:
        pool.open()
        pool.check()


def _is_running(task: asyncio.Task[Any] | None) -> bool:
    return task is not None and not task.done()


def _start(work: Any) -> asyncio.Task[Any]:
    """Start a task in a context of its own: it may outlive the request that needed it."""
    return asyncio.create_task(work, context=contextvars.Context())
