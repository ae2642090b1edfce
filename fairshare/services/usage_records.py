"""Usage records from allocations: one statement per page writes rows and cursors together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Min

from fairshare.arithmetic.slices import SLICE_MS, day_of, floor_slice, to_ms
from fairshare.models import Allocation, UsageBatch, UsageRecord
from lcm.db.clock import database_ms
from lcm.domain.resources import RESOURCE_NAMES

# Allocations per transaction, and the maximum number of slices of each; a backfill takes several.
PAGE = 10_000
MOST_SLICES = 36


class AllocationPage(NamedTuple):
    """Unsettled allocations with keys after `first`, up to and including `last`."""

    after: int
    last: int


class PageResult(NamedTuple):
    """Result of one transaction; `behind` means that some allocations are not caught up.

    `first` and `last` are the starts of its records.
    """

    allocations: int
    records: int
    behind: bool
    first: int | None
    last: int | None


def pages(size: int = PAGE) -> Iterator[AllocationPage]:
    """Yield all allocations that may need recording, in pages by key."""
    after = 0
    while keys := list(
        Allocation.objects.filter(settled=False, pk__gt=after)
        .order_by("pk")
        .values_list("pk", flat=True)[:size]
    ):
        yield AllocationPage(after, keys[-1])
        after = keys[-1]


def halves(page: AllocationPage) -> list[AllocationPage]:
    """Split a failed page in two; empty if it has only one allocation."""
    rows = Allocation.objects.filter(settled=False, pk__gt=page.after, pk__lte=page.last)
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    if len(keys) < 2:
        return []
    middle = keys[len(keys) // 2 - 1]
    return [AllocationPage(page.after, middle), AllocationPage(middle, page.last)]


def record_page(page: AllocationPage, *, now: datetime) -> PageResult:
    """Record the page up to its end or the last boundary; rows locked by another run are skipped.

    Time in the future of the database's clock is never charged, whatever `now` says.
    """
    limit = floor_slice(min(to_ms(now), database_ms()))
    with transaction.atomic():
        batch = UsageBatch.objects.create(recorded_at=now)
        write = _on_postgresql if connection.vendor == "postgresql" else _on_sqlite
        written = write(page, batch, limit)
        if written.records:
            _describe(batch, written)
        else:
            batch.delete()
    return written


def _describe(batch: UsageBatch, written: PageResult) -> None:
    """Set the record count and the days of the batch."""
    assert written.first is not None
    assert written.last is not None
    UsageBatch.objects.filter(pk=batch.pk).update(
        record_count=written.records, first_day=day_of(written.first), last_day=day_of(written.last)
    )


_ALLOCATION = Allocation._meta.db_table
_RECORD = UsageRecord._meta.db_table
_COLUMNS = ", ".join(RESOURCE_NAMES)
# Charge up to the end or the boundary, limited by the number of slices per transaction.
_GOAL = "COALESCE(a.ended_ms, %(limit)s)"
_CAP = f"a.cursor_ms - a.cursor_ms %% {SLICE_MS} + {SLICE_MS * MOST_SLICES}"
_DUE = (
    "NOT a.settled AND a.id > %(after)s AND a.id <= %(last)s"
    f" AND (a.cursor_ms < {_GOAL} OR a.ended_ms IS NOT NULL)"
)
_PRODUCTS = ", ".join(
    f"p.{name} * (LEAST(s.start + {SLICE_MS}, p.target) - GREATEST(s.start, p.cursor_ms))"
    for name in RESOURCE_NAMES
)


def _on_postgresql(page: AllocationPage, batch: UsageBatch, limit: int) -> PageResult:
    """Record in one statement; rows locked by another run are skipped, so that no run waits."""
    query = f"""
        WITH page AS MATERIALIZED (
            SELECT a.id, a.cursor_ms, a.ended_ms, {_COLUMNS}, {_GOAL} AS goal,
                   LEAST({_GOAL}, {_CAP}) AS target
            FROM {_ALLOCATION} a WHERE {_DUE} ORDER BY a.id FOR UPDATE SKIP LOCKED
        ), written AS (
            INSERT INTO {_RECORD} (allocation_id, batch_id, period_start, period_ms, {_COLUMNS})
            SELECT p.id, %(batch)s, GREATEST(s.start, p.cursor_ms),
                   LEAST(s.start + {SLICE_MS}, p.target) - GREATEST(s.start, p.cursor_ms), {_PRODUCTS}
            FROM page p
            CROSS JOIN LATERAL generate_series(
                p.cursor_ms - p.cursor_ms %% {SLICE_MS}, p.target - 1, {SLICE_MS}::bigint) AS s(start)
            WHERE p.cursor_ms < p.target
            RETURNING period_start
        ), moved AS (
            UPDATE {_ALLOCATION} a SET cursor_ms = p.target, settled = COALESCE(p.target = p.ended_ms, FALSE)
            FROM page p WHERE a.id = p.id AND a.cursor_ms = p.cursor_ms
            RETURNING p.target < p.goal AS behind
        )
        SELECT m.number, w.number, m.behind, w.first, w.last
        FROM (SELECT count(*) AS number, COALESCE(bool_or(behind), FALSE) AS behind FROM moved) m
        CROSS JOIN (
            SELECT count(*) AS number, min(period_start) AS first, max(period_start) AS last FROM written
        ) w
    """  # noqa: S608
    with connection.cursor() as cursor:
        # JIT compilation of the statement takes longer than it saves.
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(query, _parameters(page, batch, limit))
        return PageResult(*cursor.fetchone())


def _on_sqlite(page: AllocationPage, batch: UsageBatch, limit: int) -> PageResult:
    """Record in three statements; a SQLite transaction has no concurrent writers."""
    parameters = _parameters(page, batch, limit)
    target = f"MIN({_GOAL}, {_CAP})"
    products = ", ".join(f"p.{name} * (s.finish - s.start)" for name in RESOURCE_NAMES)
    insert = f"""
        INSERT INTO {_RECORD} (allocation_id, batch_id, period_start, period_ms, {_COLUMNS})
        WITH RECURSIVE page AS MATERIALIZED (
            SELECT a.id, a.cursor_ms, {_COLUMNS}, {target} AS target
            FROM {_ALLOCATION} a WHERE {_DUE}
        ), s(id, start, finish, target) AS (
            SELECT id, cursor_ms, MIN(cursor_ms - cursor_ms %% {SLICE_MS} + {SLICE_MS}, target), target
            FROM page WHERE cursor_ms < target
            UNION ALL
            SELECT id, finish, MIN(finish + {SLICE_MS}, target), target FROM s WHERE finish < target
        )
        SELECT p.id, %(batch)s, s.start, s.finish - s.start, {products} FROM s JOIN page p ON p.id = s.id
    """  # noqa: S608
    move = f"""
        UPDATE {_ALLOCATION} AS a
        SET cursor_ms = MAX(a.cursor_ms, {target}),
            settled = COALESCE(MAX(a.cursor_ms, {target}) = a.ended_ms, 0)
        WHERE {_DUE}
    """  # noqa: S608
    spread = f"SELECT min(period_start), max(period_start) FROM {_RECORD} WHERE batch_id = %(batch)s"  # noqa: S608
    late = f"SELECT EXISTS (SELECT 1 FROM {_ALLOCATION} a WHERE {_DUE})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(insert, parameters)
        records = cursor.rowcount
        cursor.execute(move, parameters)
        allocations = cursor.rowcount
        cursor.execute(late, parameters)
        behind = bool(cursor.fetchone()[0])
        cursor.execute(spread, parameters)
        return PageResult(allocations, records, behind, *cursor.fetchone())


def _parameters(page: AllocationPage, batch: UsageBatch, limit: int) -> dict[str, Any]:
    return {"after": page.after, "last": page.last, "limit": limit, "batch": batch.pk}


def unrecorded_since(*, now: datetime) -> int | None:
    """Return the oldest time in milliseconds up to which a due allocation is recorded.

    None if none is due.
    """
    limit = floor_slice(to_ms(now))
    rows = Allocation.objects.filter(settled=False)
    held = rows.filter(ended_ms=None, cursor_ms__lt=limit).aggregate(Min("cursor_ms"))["cursor_ms__min"]
    ended = rows.filter(ended_ms__isnull=False).aggregate(Min("cursor_ms"))["cursor_ms__min"]
    moments: Sequence[int] = [moment for moment in (held, ended) if moment is not None]
    return min(moments, default=None)
