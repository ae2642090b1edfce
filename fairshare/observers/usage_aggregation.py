"""The observer usage-aggregation: daily buckets from records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from fairshare.models import UsageBatch
from fairshare.services.usage_buckets import aggregate_batches, pending_batches
from scheduling.coordination.observer import ObserverHandler, ObserverResult


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
