"""Aggregation of records into daily buckets, and their comparison and rebuild."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Max, Min, Q, Sum
from django.utils.translation import gettext as _

from fairshare.arithmetic.slices import DAY_MS
from fairshare.models import Allocation, UsageBatch, UsageBucket, UsageCheck, UsageRecord
from fairshare.models.levels import ROOT, Level
from lcm.domain.actors import SYSTEM
from lcm.domain.errors import StateConflict
from lcm.domain.resources import RESOURCE_NAMES
from lcm.services.changelog import log_change
from lcm.web.wording import count_text

# Target number of records aggregated in one transaction.
RECORDS = 2_000_000
# Arbitrary advisory lock ID: only its holder writes buckets or removes records.
_LOCK = 5_201_947
DIFFERENCES_KEPT = 50


class BucketKey(NamedTuple):
    """Subject and day of a bucket."""

    day: date
    pool: str
    level: str
    subject: str
    parent: str


@dataclass(frozen=True)
class BucketDifference:
    """A bucket that differs from the sum of its records."""

    key: BucketKey
    buckets: tuple[int, ...]
    records: tuple[int, ...]

    def __str__(self) -> str:
        parts = [
            f"{name} {bucket:,} in the bucket, {record:,} in records"
            for name, bucket, record in zip(RESOURCE_NAMES, self.buckets, self.records, strict=True)
            if bucket != record
        ]
        return f"{self.key.day} {self.key.pool} {self.key.level} {self.key.subject}: {'; '.join(parts)}"


def pending_batches() -> Iterator[list[int]]:
    """Yield batches that are not aggregated, grouped for one transaction each."""
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
    """Add the records of batches to the buckets once; batches aggregated by another process are skipped."""
    with transaction.atomic():
        lock_buckets()
        batch_ids = list(
            UsageBatch.objects.select_for_update()
            .filter(pk__in=keys, aggregated_at=None)
            .values_list("pk", flat=True)
        )
        if batch_ids:
            _add(f"r.batch_id IN ({', '.join(map(str, batch_ids))})")
            UsageBatch.objects.filter(pk__in=batch_ids).update(aggregated_at=now)
    return len(batch_ids)


def rebuild_day(day: date) -> list[BucketDifference]:
    """Rebuild the buckets of a day from its aggregated records; return the differences.

    Raise StateConflict if retention removed records of the day, because its buckets cannot be recomputed.
    """
    with transaction.atomic():
        lock_buckets()
        if not is_complete(day):
            raise StateConflict(
                _("Records of %(day)s were removed; its buckets stay unchanged.") % {"day": day}
            )
        differences = differences_of(day)
        if differences:
            UsageBucket.objects.filter(day=day).delete()
            _add(_of_day(day))
    return differences


def differences_of(day: date) -> list[BucketDifference]:
    """Return the differences between the buckets of a day and its aggregated records."""
    buckets, records = _buckets(day), _sums(_of_day(day))
    nothing = (0,) * len(RESOURCE_NAMES)
    return [
        BucketDifference(key, buckets.get(key, nothing), records.get(key, nothing))
        for key in sorted(buckets.keys() | records.keys(), key=str)
        if buckets.get(key, nothing) != records.get(key, nothing)
    ]


def check_usage(
    *, first: date, last: date, now: datetime, after_day: Callable[[], None] = lambda: None
) -> UsageCheck:
    """Compare records with buckets, each day in one snapshot, and store the result.

    Days whose records were removed are skipped.
    """
    differences: list[BucketDifference] = []
    for number in range((last - first).days + 1):
        day = date.fromordinal(first.toordinal() + number)
        with _snapshot():
            differences += differences_of(day) if is_complete(day) else []
        after_day()
    batches = UsageBatch.objects.filter(
        _overlapping(first, last), aggregated_at__isnull=False, removed_at=None
    )
    with transaction.atomic():
        # Locked, so that two checks do not announce the same differences.
        lock_buckets()
        last_check = UsageCheck.objects.order_by("-checked_at", "-pk").first()
        check = UsageCheck.objects.create(
            checked_at=now,
            first_day=first,
            last_day=last,
            record_count=batches.aggregate(Sum("record_count"))["record_count__sum"] or 0,
            difference_count=len(differences),
            differences=[str(difference) for difference in differences[:DIFFERENCES_KEPT]],
        )
        _log_check(check, last_check, now)
    return check


def _log_check(check: UsageCheck, last: UsageCheck | None, now: datetime) -> None:
    """Log new differences, and their end; differences that the last check found too are not logged again."""
    known = last.differences if last else []
    if check.differences == known:
        return
    event, message = "usage.mismatch_cleared", "usage buckets equal their records again"
    if check.differences:
        differing = count_text(check.difference_count, "usage bucket")
        verb = "differs" if check.difference_count == 1 else "differ"
        event, message = "usage.mismatch_detected", f"{differing} {verb} from the records"
    after = {"differences": check.differences}
    log_change(check, actor=SYSTEM, event=event, message=message, after=after, now=now)


@contextmanager
def _snapshot() -> Iterator[None]:
    """Give all reads of the block the same snapshot, independent of concurrent commits."""
    nested = connection.in_atomic_block
    with transaction.atomic():
        if nested:
            # The isolation level cannot be changed inside a transaction: lock out the writers instead.
            lock_buckets()
        elif connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def is_complete(day: date) -> bool:
    """Return whether no records of the day were removed."""
    return not UsageBatch.objects.filter(_overlapping(day, day), removed_at__isnull=False).exists()


def recorded_days() -> tuple[date, date] | None:
    """Return the range of days with complete records, which can be rebuilt; None without any record."""
    kept = UsageBatch.objects.filter(removed_at=None, record_count__gt=0)
    days = kept.aggregate(Min("first_day"), Max("last_day"))
    first, last = days["first_day__min"], days["last_day__max"]
    if first is None:
        return None
    last_removed = UsageBatch.objects.filter(removed_at__isnull=False).aggregate(Max("last_day"))[
        "last_day__max"
    ]
    if last_removed is not None and last_removed >= first:
        first = date.fromordinal(last_removed.toordinal() + 1)
    return (first, last) if first <= last else None


def lock_buckets() -> None:
    """Block other writers of buckets and records until the transaction ends; SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


_TABLES = f"{UsageRecord._meta.db_table} r JOIN {Allocation._meta.db_table} a ON a.id = r.allocation_id"
_COLUMNS = ", ".join(RESOURCE_NAMES)
_UNIQUE = "pool, level, day, subject_id, parent_id"


def _deltas(where: str) -> str:
    """Return SQL that sums the matching records at each level, in one pass."""
    total = "CAST(SUM({}) AS bigint)"
    day = (
        f"DATE '1970-01-01' + CAST(r.period_start / {DAY_MS} AS integer)"
        if connection.vendor == "postgresql"
        else "date(r.period_start / 1000, 'unixepoch')"
    )
    root = f"'{ROOT}'::uuid" if connection.vendor == "postgresql" else f"'{ROOT.hex}'"
    records = ", ".join(f"{total.format(f'r.{name}')} AS {name}" for name in RESOURCE_NAMES)
    sums = ", ".join(total.format(name) for name in RESOURCE_NAMES)
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
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in RESOURCE_NAMES)
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
        "day", "pool", "level", "subject_id", "parent_id", *RESOURCE_NAMES
    )
    return {_key(row[:5]): tuple(row[5:]) for row in rows}


def _key(values: Sequence[Any]) -> BucketKey:
    """Return a key with the same types from raw queries and models, on both databases."""
    day, pool, level, subject, parent = values
    day = day if isinstance(day, date) else date.fromisoformat(day)
    return BucketKey(day, pool, level, _plain(subject), _plain(parent))


def _plain(key: object) -> str:
    return str(key).replace("-", "")


def _of_day(day: date) -> str:
    """Return the SQL condition for aggregated records of a UTC day, found by their batches."""
    start = (day - date(1970, 1, 1)).days * DAY_MS
    batches = UsageBatch.objects.filter(_overlapping(day, day), aggregated_at__isnull=False, removed_at=None)
    keys = ", ".join(map(str, batches.values_list("pk", flat=True))) or "-1"
    return f"r.batch_id IN ({keys}) AND r.period_start >= {start} AND r.period_start < {start + DAY_MS}"


def _overlapping(first: date, last: date) -> Q:
    return Q(first_day__lte=last, last_day__gte=first)
