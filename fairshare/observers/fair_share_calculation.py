"""The observer fair-share-calculation: factors from buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db.models import Max

from fairshare.services.calculation import calculate_pool
from scheduling.coordination.observer import ObserverHandler, ObserverResult
from scheduling.models import Pool


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
        moments = [each for each in newest if each is not None]
        return now - min(moments) if moments else None
