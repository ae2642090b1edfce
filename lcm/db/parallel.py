"""Run independent transactions in parallel if the database supports several writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

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
    calls = functions
    if writers > 1:
        with ThreadPoolExecutor(writers) as threads:
            # Each thread gets a copy of the caller's context, so that log lines keep the request or task id.
            calls = [
                threads.submit(copy_context().run, _on_own_connection, function).result
                for function in functions
            ]
    results, errors = [], []
    for call in calls:
        try:
            results.append(call())
        except Exception as error:
            errors.append(error)
    return results, errors


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
