"""Usage and fair share: recording, aggregation and factors compared with floors, and the cost of history.

Floors are plain statements that write the same rows into tables with the same columns, indexes and foreign
keys, measured in the same run.
BENCH_HISTORY sets the number of existing records for the last table, such as `0,10000000,30000000`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.benchmarks.measuring import print_table, start_django

if TYPE_CHECKING:
    from tests.benchmarks.fill_usage import UsageFiller

NOW = datetime(2026, 3, 2, 12, 0, 1, tzinfo=UTC)
HISTORY = (0, 1_000_000, 10_000_000)


def main() -> None:
    start_django()
    from django.db import connection

    from tests.benchmarks.fill_usage import UsageFiller

    postgresql = connection.vendor == "postgresql"
    kernels = 100_000 if postgresql else 10_000
    filler = UsageFiller(NOW, kernels=kernels, people=kernels)
    rows = [_recording(filler), _aggregation(filler, kernels * 10), *_factors(filler)]
    print_table(
        f"Usage and fair share, {connection.vendor}",
        ["what", "rows", "s", "floor s", "÷ floor", "target"],
        rows,
    )
    if postgresql:
        print_table(
            "A pass over 10,000 running kernels with old records, postgresql",
            ["old records", "record s", "aggregate s", "nothing to record s", "nothing to aggregate s"],
            [_with_history(filler, count) for count in _history()],
        )


def _recording(filler: UsageFiller) -> list[str]:
    """Measure recording; every kernel has one unrecorded slice."""
    from fairshare.services.usage_records import pages, record_page

    filler.allocate()
    floor = filler.bare_records()
    begun = time.perf_counter()
    written = sum(record_page(page, now=NOW).records for page in pages())
    seconds = time.perf_counter() - begun
    assert written == filler.kernels, written
    return _row("record running kernels", written, seconds, floor, "≤ 3 × floor")


def _aggregation(filler: UsageFiller, count: int) -> list[str]:
    from fairshare.models import UsageBatch
    from fairshare.services.usage_buckets import aggregate_batches, pending_batches

    filler.records(count)
    floor = _timed(filler.bare_buckets)
    begun = time.perf_counter()
    for group in pending_batches():
        aggregate_batches(group, now=NOW)
    seconds = time.perf_counter() - begun
    assert not UsageBatch.objects.filter(aggregated_at=None).exists()
    return _row("aggregate records into three levels", count, seconds, floor, "≤ 3 × floor")


def _factors(filler: UsageFiller) -> list[list[str]]:
    """Measure factors of people with usage on three days: first inserts, then updates."""
    from fairshare.selectors.level_factors import pool_level_factors
    from fairshare.selectors.trees import policy_of, tree_of
    from fairshare.services.calculation import calculate_pool, factors_of

    filler.people_with_usage()
    policy = policy_of(filler.pool)
    begun, cpu = time.perf_counter(), time.process_time()
    results = factors_of(filler.pool, policy, now=NOW)
    computed, cpu_computed = time.perf_counter(), time.process_time()
    read = _timed(lambda: tree_of(filler.pool, policy, now=NOW))
    first = _timed(lambda: calculate_pool(filler.pool, now=NOW))
    second = _timed(lambda: calculate_pool(filler.pool, now=NOW + timedelta(days=1)))
    read = _timed(lambda: pool_level_factors(filler.pool))
    count = filler.people
    return [
        _row("factors: read and compute", len(results), computed - begun, None, "≤ 2 s"),
        _row("the same, CPU of our process", len(results), cpu_computed - cpu),
        _row("factors: read tree and decayed usage alone", count, read),
        _row("factors: all, rows made", count, first),
        _row("factors: all, rows changed", count, second),
        _row("level factors for the scheduler", count, read),
    ]


def _with_history(filler: UsageFiller, count: int) -> list[str]:
    from fairshare.services.usage_buckets import aggregate_batches, pending_batches
    from fairshare.services.usage_records import pages, record_page

    print(f"filling {count:,} old records …", file=sys.stderr, flush=True)
    filler.history(count)
    filler.allocate(10_000)

    def record() -> None:
        for page in pages():
            record_page(page, now=NOW)

    def aggregate() -> None:
        for group in pending_batches():
            aggregate_batches(group, now=NOW)

    seconds = [_timed(work) for work in (record, aggregate, record, aggregate)]
    return [f"{count:,}", *(f"{each:.3f}" for each in seconds)]


def _history() -> list[int]:
    given = os.environ.get("BENCH_HISTORY", "")
    return [int(each) for each in given.split(",")] if given else list(HISTORY)


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _row(what: str, rows: int, seconds: float, floor: float | None = None, target: str = "") -> list[str]:
    ratio = f"{seconds / floor:.1f}" if floor else ""
    return [what, f"{rows:,}", f"{seconds:.2f}", f"{floor:.2f}" if floor else "", ratio, target]


if __name__ == "__main__":
    main()
