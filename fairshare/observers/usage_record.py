"""The observer usage-record: usage of every kernel per time slice."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import Error as DatabaseError

from fairshare.arithmetic.slices import to_moment
from fairshare.services.usage_records import AllocationPage, halves, pages, record_page, unrecorded_since
from scheduling.coordination.observer import ObserverHandler, ObserverResult

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
