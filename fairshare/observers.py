"""Observers of fair share: usage records, daily buckets, factors."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import Error as DatabaseError
from django.db.models import Max

from fairshare.arithmetic.slices import to_moment
from fairshare.models import UsageBatch
from fairshare.services.calculation import calculate_pool
from fairshare.services.usage_buckets import aggregate_batches, pending_batches
from fairshare.services.usage_records import AllocationPage, halves, pages, record_page, unrecorded_since
from scheduling.coordination.observer import ObserverHandler, ObserverResult
from scheduling.models import Pool

logger = logging.getLogger(__name__)


class UsageRecordObserver(ObserverHandler[AllocationPage]):
    """Records every 5 minutes, and when a node ends, the resources that each node of a lab held."""

    interval_setting = "USAGE_RECORD_INTERVAL"
    page_size = 1

    @classmethod
    def name(cls) -> str:
        return "usage-record"

    def fetch_targets(self, now: datetime) -> Iterator[AllocationPage]:
        """Yield pages of allocations, including kernels that ended since the last pass."""
        yield from pages()

    def execute(self, targets: Sequence[AllocationPage], now: datetime) -> ObserverResult:
        result = ObserverResult()
        for page in targets:
            result += self._record_or_halve(page, now)
        return result

    def _record_or_halve(self, page: AllocationPage, now: datetime) -> ObserverResult:
        """Record a page in one transaction.

        If that fails, record its halves, until the failing row is isolated.
        """
        try:
            return ObserverResult(success_count=self._record(page, now))
        except DatabaseError as error:
            parts = halves(page)
            if not parts:
                logger.exception("usage_record_failed", extra={"allocation": page.last})
                return ObserverResult(failure_count=1, error=f"allocation {page.last}: {error}")
            return self.execute(parts, now)

    def lag(self, now: datetime) -> timedelta | None:
        since = unrecorded_since(now=now)
        return None if since is None else now - to_moment(since)

    def _record(self, page: AllocationPage, now: datetime) -> int:
        """Record a page in as many transactions as the backfill needs."""
        done = record_page(page, now=now)
        count = done.allocations
        while done.behind and done.records:
            done = record_page(page, now=now)
        return count


class UsageAggregationObserver(ObserverHandler[list[int]]):
    """Sums new records into one bucket per day for each person, project and domain."""

    interval_setting = "USAGE_AGGREGATION_INTERVAL"
    page_size = 1

    @classmethod
    def name(cls) -> str:
        return "usage-aggregation"

    def fetch_targets(self, now: datetime) -> Iterator[list[int]]:
        yield from pending_batches()

    def execute(self, targets: Sequence[list[int]], now: datetime) -> ObserverResult:
        return ObserverResult(success_count=sum(aggregate_batches(target, now=now) for target in targets))

    def lag(self, now: datetime) -> timedelta | None:
        oldest = UsageBatch.objects.filter(aggregated_at=None).order_by("pk").first()
        return None if oldest is None else now - oldest.recorded_at


class FairShareCalculationObserver(ObserverHandler[Pool]):
    """Calculates the factor and rank of each domain, project and person in every pool from usage."""

    interval_setting = "FAIR_SHARE_INTERVAL"
    page_size = 1

    @classmethod
    def name(cls) -> str:
        return "fair-share-calculation"

    def fetch_targets(self, now: datetime) -> Iterator[Pool]:
        yield from Pool.objects.order_by("pk")

    def execute(self, targets: Sequence[Pool], now: datetime) -> ObserverResult:
        for pool in targets:
            calculate_pool(pool, now=now)
        return ObserverResult(success_count=len(targets))

    def lag(self, now: datetime) -> timedelta | None:
        """Return the age of the oldest calculation."""
        newest = Pool.objects.annotate(last=Max("fair_share_calculations__at")).values_list("last", flat=True)
        moments = [moment for moment in newest if moment is not None]
        return now - min(moments) if moments else None
