"""Run independent transactions in parallel if the database supports several writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.conf import settings
from django.db import connection, connections

Result = TypeVar("Result")
# While the database writes one batch, Python prepares the next.
WRITERS = 2


def run_in_parallel(functions: Sequence[Callable[[], Result]]) -> tuple[list[Result], list[Exception]]:
    """Return the results in order and the exceptions of the functions that failed. Failures are independent.

    On SQLite, which has one writer, and inside a transaction the functions run one after the other.
    """
    writers = min(_writers(), len(functions))
    if writers < 2:
        outcomes = [_outcome(function) for function in functions]
    else:
        with ThreadPoolExecutor(writers) as threads:
            # Each thread gets a copy of the caller's context, so that log lines keep the request or task id.
            futures = [
                threads.submit(copy_context().run, _on_own_connection, function) for function in functions
            ]
        outcomes = [_outcome(each.result) for each in futures]
    return (
        [each.value for each in outcomes if isinstance(each, _Done)],
        [each for each in outcomes if isinstance(each, Exception)],
    )


@dataclass(frozen=True)
class _Done(Generic[Result]):
    value: Result


def _outcome(function: Callable[[], Result]) -> _Done[Result] | Exception:
    try:
        return _Done(function())
    except Exception as error:
        return error


def _writers() -> int:
    """Return how many connections may write at once; two stay free, for the caller and for lease renewal."""
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        return 1
    pool = settings.CONFIG["DATABASE_POOL_SIZE"]
    return min(WRITERS, pool - 2) if pool else WRITERS


def _on_own_connection(function: Callable[[], Result]) -> Result:
    try:
        return function()
    finally:
        connections.close_all()
