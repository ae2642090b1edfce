"""Independent transactions on several connections at once, where the database takes several writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from django.conf import settings
from django.db import connection, connections

Result = TypeVar("Result")
# While the database writes one piece, the next is put together.
WRITERS = 2


def side_by_side(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """What each answers, in their order; when one fails the others are finished before its error is raised.

    SQLite has one writer, and inside a transaction all belongs to it: there they run one after the other.
    """
    writers = min(_writers(), len(works))
    if writers < 2:
        return [work() for work in works]
    with ThreadPoolExecutor(writers) as threads:
        # Each with a context of its own, so that log lines and events stay those of the caller.
        begun = [threads.submit(copy_context().run, _on_own_connection, work) for work in works]
    return [each.result() for each in begun]


def _writers() -> int:
    """How many connections may be written on at once, the caller's own left out."""
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return 1
    pool = settings.CONFIG["DATABASE_POOL_SIZE"]
    return min(WRITERS, pool - 1) if pool else WRITERS


def _on_own_connection(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        connections.close_all()
