"""`manage.py usage_retention`: delete old records and buckets, as the daily task does."""

from __future__ import annotations

from django.core.management.base import BaseCommand
from django.utils import timezone

from fairshare.services.retention import remove_old_usage


class Command(BaseCommand):
    help = "Delete usage older than USAGE_RECORD_DAYS and USAGE_BUCKET_DAYS."

    def handle(self, *args: object, **options: object) -> None:
        removed = remove_old_usage(now=timezone.now())
        self.stdout.write(
            f"Removed {removed.records:,} records, {removed.buckets:,} buckets and "
            f"{removed.allocations:,} allocations."
        )
