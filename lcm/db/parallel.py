"""Independent transactions on several connections at once, where the database takes several writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.conf import settings
from django.db import connection, connections

Result = TypeVar("Result")
# While the database writes one piece, the next is put together.
WRITERS = 2


def run_in_parallel(works: Sequence[Callable[[], Result]]) -> tuple[list[Result], list[Exception]]:
    """What they answered, in their order, and what went wrong in those that failed: each fails alone.

    SQLite has one writer, and inside a transaction all belongs to it: there they run one after the other.
    """
    writers = min(_writers(), len(works))
    if writers < 2:
        outcomes = [_outcome(work) for work in works]
    else:
        with ThreadPoolExecutor(writers) as threads:
            # Each with a context of its own, so that log lines and events stay those of the caller.
            begun = [threads.submit(copy_context().run, _on_own_connection, work) for work in works]
        outcomes = [_outcome(each.result) for each in begun]
    return (
        [each.value for each in outcomes if isinstance(each, _Done)],
        [each for each in outcomes if isinstance(each, Exception)],
    )


@dataclass(frozen=True)
class _Done(Generic[Result]):
    value: Result


def _outcome(work: Callable[[], Result]) -> _Done[Result] | Exception:
    try:
        return _Done(work())
    except Exception as error:
        return error


def _writers() -> int:
    """How many connections may write at once, beside the caller's own and the one that renews its lease."""
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return 1
    pool = settings.CONFIG["DATABASE_POOL_SIZE"]
    return min(WRITERS, pool - 2) if pool else WRITERS


def _on_own_connection(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        connections.close_all()
