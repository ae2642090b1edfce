"""Opening and closing of allocations in bulk, in the transaction of the session transitions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import F, Value
from django.db.models.functions import Greatest, Least

from fairshare.arithmetic.slices import to_ms
from fairshare.models import Allocation
from lcm.db.bulk import ids_subquery
from lcm.db.clock import milliseconds_expression, milliseconds_sql
from lcm.domain.lifecycle import FINAL, SessionStatus
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Kernel, LabletSession, Project

# SQLite limits the number of parameters per statement.
CHUNK = 10_000


def update_allocations(
    *,
    session_ids: Sequence[UUID],
    old: SessionStatus,
    new: SessionStatus,
    now: datetime,
    lab_removed: bool,
) -> None:
    """Open allocations of sessions assigned to a slot.

    Close them when sessions end or return to the queue.
    """
    for start in range(0, len(session_ids), CHUNK):
        chunk = list(session_ids[start : start + CHUNK])
        if new == SessionStatus.SCHEDULED:
            open_allocations(chunk, now=now)
        elif new in FINAL or new == SessionStatus.PENDING:
            close_allocations(chunk, now=now)


def open_allocations(session_ids: Sequence[UUID], *, now: datetime) -> None:
    """Create a row per kernel for its current attempt, starting no later than the database's clock.

    A second call changes nothing.
    """
    table, kernel = Allocation._meta.db_table, Kernel._meta.db_table
    session, project = LabletSession._meta.db_table, Project._meta.db_table
    amounts = ", ".join(f"CAST(ROUND(k.{name} * 100) AS bigint)" for name in RESOURCE_NAMES)
    source, keys = ids_subquery(session_ids)
    least = "LEAST" if connection.vendor == "postgresql" else "MIN"
    start = f"{least}(%s, {milliseconds_sql()})"
    query = (
        f"INSERT INTO {table} (kernel_id, attempt, session_id, user_id, project_id, domain_id, pool,"  # noqa: S608
        f" {', '.join(RESOURCE_NAMES)}, started_ms, cursor_ms, settled)"
        f" SELECT k.id, k.attempt, s.id, s.owner_id, s.project_id, p.domain_id, s.pool, {amounts},"
        f" {start}, {start}, %s"
        f" FROM {kernel} k JOIN {session} s ON s.id = k.session_id JOIN {project} p ON p.id = s.project_id"
        f" WHERE s.id IN ({source}) ON CONFLICT (kernel_id, attempt) DO NOTHING"
    )
    at = to_ms(now)
    with connection.cursor() as cursor:
        cursor.execute(query, [at, at, False, keys])


def close_allocations(session_ids: Sequence[UUID], *, now: datetime) -> int:
    """Close allocations now: never before recorded usage, and never after the database's clock."""
    kernels = Kernel.objects.filter(session_id__among=session_ids).order_by().values("pk")
    held = Allocation.objects.filter(kernel_id__in=kernels, ended_ms=None)
    return held.update(ended_ms=Greatest(F("cursor_ms"), Least(Value(to_ms(now)), milliseconds_expression())))
