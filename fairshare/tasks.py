"""Celery tasks of fair share. Each task is idempotent and may be skipped."""

from __future__ import annotations

from datetime import UTC, timedelta

from celery import Task, shared_task
from django.utils import timezone

from fairshare.services import retention, usage_buckets, usage_totals

CHECKED_DAYS = 28


@shared_task
def remove_old_usage() -> None:
    retention.remove_old_usage(now=timezone.now())


@shared_task(bind=True, max_retries=100)
def sum_usage(self: Task, *arguments: str) -> None:
    """Compute and cache a requested sum; retry later while another sum is running."""
    if not usage_totals.cache_totals(usage_totals.UsageQuery.from_arguments(*arguments), now=timezone.now()):
        raise self.retry(countdown=5)


@shared_task
def check_usage() -> None:
    """Compare records with buckets over all days that can be compared."""
    days = usage_buckets.recorded_days()
    if days is None:
        return
    now = timezone.now()
    earliest = now.astimezone(UTC).date() - timedelta(days=CHECKED_DAYS - 1)
    first, last = max(days[0], earliest), days[1]
    if first <= last:
        usage_buckets.check_usage(first=first, last=last, now=now)
