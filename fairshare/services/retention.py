"""Deletion of expired usage in batches: aggregated records, and buckets past their retention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from fairshare.arithmetic.slices import to_ms
from fairshare.models import Allocation, UsageBatch, UsageBucket, UsageCheck, UsageRecord
from fairshare.services.usage_buckets import lock_buckets
from lcm.db.bulk import delete_in_batches

BATCH = 5_000


@dataclass(frozen=True)
class RemovedRows:
    """Number of deleted rows."""

    records: int
    buckets: int
    allocations: int


def remove_old_usage(*, now: datetime) -> RemovedRows:
    """Delete usage past the configured retention; records not yet aggregated are kept."""
    keep_records = timedelta(days=settings.CONFIG["USAGE_RECORD_DAYS"])
    keep_buckets = timedelta(days=settings.CONFIG["USAGE_BUCKET_DAYS"])
    records = _remove_records(now - keep_records, now)
    old_buckets = UsageBucket.objects.filter(day__lt=(now - keep_buckets).date()).order_by("pk")
    buckets = delete_in_batches(old_buckets, BATCH)
    allocations = _remove_allocations(now - keep_records)
    UsageCheck.objects.filter(checked_at__lt=now - keep_records).delete()
    return RemovedRows(records, buckets, allocations)


def _remove_records(before: datetime, now: datetime) -> int:
    """Delete records batch by batch; the batch row stays and shows from which day records are complete."""
    removed = 0
    old = UsageBatch.objects.filter(
        recorded_at__lt=before, aggregated_at__isnull=False, removed_at=None
    ).order_by("recorded_at")
    while keys := list(old.values_list("pk", flat=True)[:20]):
        with transaction.atomic():
            # A rebuild checks under the same lock whether the records of its day are complete.
            lock_buckets()
            removed += UsageRecord.objects.filter(batch__in=keys).delete()[0]
            UsageBatch.objects.filter(pk__in=keys).update(removed_at=now)
    return removed


def _remove_allocations(before: datetime) -> int:
    """Delete allocations that ended long ago and have no records, page by page."""
    removed, after = 0, 0
    old = Allocation.objects.filter(settled=True, ended_ms__lt=to_ms(before)).order_by("pk")
    while keys := list(old.filter(pk__gt=after).values_list("pk", flat=True)[:BATCH]):
        after = keys[-1]
        bare = list(Allocation.objects.filter(pk__in=keys, records=None).values_list("pk", flat=True))
        removed += Allocation.objects.filter(pk__in=bare).delete()[0]
    return removed
