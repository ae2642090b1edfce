"""Summing records into daily buckets, and comparing or rebuilding buckets from records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Max, Min, Q, Sum

from fairshare.arithmetic.slices import DAY_MS
from fairshare.arithmetic.units import RESOURCES
from fairshare.models import Allocation, UsageBatch, UsageBucket, UsageCheck, UsageRecord
from fairshare.models.levels import ROOT, Level
from lcm.domain.errors import StateConflict

# Records summed in one transaction, as far as batches can be had in this size.
RECORDS = 2_000_000
# Any number that nothing else uses: only the holder of this lock writes buckets or removes records.
_LOCK = 5_201_947
DIFFERENCES_KEPT = 50


class BucketKey(NamedTuple):
    """Whose usage of which day."""

    day: date
    pool: str
    level: str
    subject: Any
    parent: Any


@dataclass(frozen=True)
class BucketDifference:
    """A bucket that is not what its records sum up to."""

    key: BucketKey
    buckets: tuple[int, ...]
    records: tuple[int, ...]

    def __str__(self) -> str:
        parts = [
            f"{name} {bucket:,} in the bucket, {record:,} in records"
            for name, bucket, record in zip(RESOURCES, self.buckets, self.records, strict=True)
            if bucket != record
        ]
        return f"{self.key.day} {self.key.pool} {self.key.level} {self.key.subject}: {'; '.join(parts)}"


def pending_batches() -> Iterator[list[int]]:
    """Batches that no bucket has yet, in groups for one transaction each."""
    after = 0
    while rows := list(
        UsageBatch.objects.filter(aggregated_at=None, pk__gt=after)
        .order_by("pk")
        .values_list("pk", "record_count")[:1_000]
    ):
        group: list[int] = []
        size = 0
        for key, count in rows:
            group.append(key)
            size += count
            if size >= RECORDS:
                break
        yield group
        after = group[-1]


def aggregate_batches(keys: Sequence[int], *, now: datetime) -> int:
    """Add the batches' records to the buckets, once: a batch that someone was quicker with is left out."""
    with transaction.atomic():
        lock_buckets()
        mine = list(
            UsageBatch.objects.select_for_update()
            .filter(pk__in=keys, aggregated_at=None)
            .values_list("pk", flat=True)
        )
        if mine:
            _add(f"r.batch_id IN ({', '.join(map(str, mine))})")
            UsageBatch.objects.filter(pk__in=mine).update(aggregated_at=now)
    return len(mine)


def rebuild_day(day: date) -> list[BucketDifference]:
    """Make the buckets of a day anew from its aggregated records; return what was different.

    Raises StateConflict if retention removed records of the day: its buckets are all that is left of them.
    """
    with transaction.atomic():
        lock_buckets()
        if not is_complete(day):
            raise StateConflict(f"Records of {day} were removed; its buckets are left as they are.")
        found = differences_of(day)
        if found:
            UsageBucket.objects.filter(day=day).delete()
            _add(_of_day(day))
    return found


def differences_of(day: date) -> list[BucketDifference]:
    """What the buckets of a day have and its aggregated records do not, or the other way round."""
    buckets, records = _buckets(day), _sums(_of_day(day))
    nothing = (0,) * len(RESOURCES)
    return [
        BucketDifference(key, buckets.get(key, nothing), records.get(key, nothing))
        for key in sorted(buckets.keys() | records.keys(), key=str)
        if buckets.get(key, nothing) != records.get(key, nothing)
    ]


def check_usage(
    *, first: date, last: date, now: datetime, after_day: Callable[[], None] = lambda: None
) -> UsageCheck:
    """Compare records with buckets over some days, each day in one snapshot, and keep the result.

    Days whose records were removed are left out.
    """
    found: list[BucketDifference] = []
    for number in range((last - first).days + 1):
        day = date.fromordinal(first.toordinal() + number)
        with _snapshot():
            found += differences_of(day) if is_complete(day) else []
        after_day()
    batches = UsageBatch.objects.filter(
        _overlapping(first, last), aggregated_at__isnull=False, removed_at=None
    )
    return UsageCheck.objects.create(
        checked_at=now,
        first_day=first,
        last_day=last,
        record_count=batches.aggregate(Sum("record_count"))["record_count__sum"] or 0,
        difference_count=len(found),
        differences=[str(each) for each in found[:DIFFERENCES_KEPT]],
    )


@contextmanager
def _snapshot() -> Iterator[None]:
    """Make all reads of the block see the same moment, whatever observers and retention commit meanwhile."""
    nested = connection.in_atomic_block
    with transaction.atomic():
        if nested:
            # The isolation level cannot be changed any more: keep the writers out instead.
            lock_buckets()
        elif connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def is_complete(day: date) -> bool:
    """Return whether all records of the day are still there."""
    return not UsageBatch.objects.filter(_overlapping(day, day), removed_at__isnull=False).exists()


def recorded_days() -> tuple[date, date] | None:
    """The days whose buckets can be made anew: no record of theirs was removed. None without any record."""
    kept = UsageBatch.objects.filter(removed_at=None, record_count__gt=0)
    days = kept.aggregate(Min("first_day"), Max("last_day"))
    first, last = days["first_day__min"], days["last_day__max"]
    if first is None:
        return None
    gone = UsageBatch.objects.filter(removed_at__isnull=False).aggregate(Max("last_day"))["last_day__max"]
    if gone is not None and gone >= first:
        first = date.fromordinal(gone.toordinal() + 1)
    return (first, last) if first <= last else None


def lock_buckets() -> None:
    """Until this transaction ends no other one writes buckets or removes records; SQLite has one writer."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


_TABLES = f"{UsageRecord._meta.db_table} r JOIN {Allocation._meta.db_table} a ON a.id = r.allocation_id"
_COLUMNS = ", ".join(RESOURCES)
_UNIQUE = "pool, level, day, subject_id, parent_id"


def _deltas(where: str) -> str:
    """Sums of the records a condition names, at each level; one pass over them."""
    whole = "CAST(SUM({}) AS bigint)"
    day = (
        f"DATE '1970-01-01' + CAST(r.period_start / {DAY_MS} AS integer)"
        if connection.vendor == "postgresql"
        else "date(r.period_start / 1000, 'unixepoch')"
    )
    root = f"'{ROOT}'::uuid" if connection.vendor == "postgresql" else f"'{ROOT.hex}'"
    records = ", ".join(f"{whole.format(f'r.{name}')} AS {name}" for name in RESOURCES)
    sums = ", ".join(whole.format(name) for name in RESOURCES)
    return f"""
        WITH people AS MATERIALIZED (
            SELECT {day} AS day, a.pool, a.domain_id, a.project_id, a.user_id, {records}
            FROM {_TABLES} WHERE {where}
            GROUP BY 1, 2, 3, 4, 5
        ), every_level (pool, level, day, subject_id, parent_id, {_COLUMNS}) AS (
            SELECT pool, '{Level.USER}', day, user_id, project_id, {sums} FROM people
            GROUP BY pool, day, user_id, project_id
            UNION ALL
            SELECT pool, '{Level.PROJECT}', day, project_id, domain_id, {sums} FROM people
            GROUP BY pool, day, project_id, domain_id
            UNION ALL
            SELECT pool, '{Level.DOMAIN}', day, domain_id, {root}, {sums} FROM people
            GROUP BY pool, day, domain_id
        )
    """  # noqa: S608


def _add(where: str) -> None:
    """Add the sums to the buckets."""
    table = UsageBucket._meta.db_table
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in RESOURCES)
    query = (
        f"INSERT INTO {table} ({_UNIQUE}, {_COLUMNS}) {_deltas(where)}"  # noqa: S608
        f" SELECT {_UNIQUE}, {_COLUMNS} FROM every_level WHERE 1 = 1"
        f" ON CONFLICT ({_UNIQUE}) DO UPDATE SET {added}"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)


def _sums(where: str) -> dict[BucketKey, tuple[int, ...]]:
    query = f"{_deltas(where)} SELECT day, pool, level, subject_id, parent_id, {_COLUMNS} FROM every_level"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(query)
        return {_key(row[:5]): tuple(map(int, row[5:])) for row in cursor.fetchall()}


def _buckets(day: date) -> dict[BucketKey, tuple[int, ...]]:
    rows = UsageBucket.objects.filter(day=day).values_list(
        "day", "pool", "level", "subject_id", "parent_id", *RESOURCES
    )
    return {_key(row[:5]): tuple(row[5:]) for row in rows}


def _key(values: Sequence[Any]) -> BucketKey:
    """Days and ids as text, alike from a raw query and from the models, on both databases."""
    day, pool, level, subject, parent = values
    return BucketKey(day, pool, level, _plain(subject), _plain(parent))._replace(
        day=day if isinstance(day, date) else date.fromisoformat(day)
    )


def _plain(key: Any) -> str:
    return str(key).replace("-", "")


def _of_day(day: date) -> str:
    """Aggregated records of a UTC day, found by the batches that reach into it."""
    start = (day - date(1970, 1, 1)).days * DAY_MS
    batches = UsageBatch.objects.filter(_overlapping(day, day), aggregated_at__isnull=False, removed_at=None)
    keys = ", ".join(map(str, batches.values_list("pk", flat=True))) or "-1"
    return f"r.batch_id IN ({keys}) AND r.period_start >= {start} AND r.period_start < {start + DAY_MS}"


def _overlapping(first: date, last: date) -> Q:
    return Q(first_day__lte=last, last_day__gte=first)
