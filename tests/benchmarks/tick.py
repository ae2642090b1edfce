"""One tick over pending sessions × slots: seconds per step, compared with a floor, and growth.

The floor is the minimum of any tick: reading the waiting rows and one plain UPDATE of as many rows as the
tick changed. CPU seconds exclude the database. The case of full slots runs two ticks: the first records
the wait reason of every reservation, the second finds no change.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field

from tests.benchmarks.measuring import print_table, start_django

SIZES = ((1_000, 200), (5_000, 1_000), (20_000, 4_000))
STEPS = ("expire", "interrupt", "place", "launch", "keep_minimum", "scale_down")
WARM_UP = (200, 40)
AGAIN = "READY but full, again"
TARGETS = {(AGAIN, 4_000): 0.5, ("READY", 4_000): 2.0}


@dataclass
class TickFigures:
    """Duration and result of one tick, and its floor."""

    seconds: float
    cpu: float
    floor: float
    step_ms: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


def main() -> None:
    start_django()
    from django.db import connection

    from tests.benchmarks.fill_capacity import CASES, CapacityFiller

    filler = CapacityFiller()
    rows = []
    for case in _cases(CASES):
        _measure(filler, case, *WARM_UP)
        last: TickFigures | None = None
        for pending, slots in _sizes():
            print(f"{connection.vendor}: {case}, {pending:,} × {slots:,} …", file=sys.stderr, flush=True)
            found = _measure(filler, case, pending, slots)
            rows.append(_row(case, pending, slots, found, last))
            last = found
    print_table(
        f"One tick, pending × slots, {connection.vendor}",
        [
            "slots",
            "size",
            "s",
            "CPU s",
            *(f"{step} ms" for step in STEPS),
            "floor s",
            "÷ floor",
            "growth",
            "did",
            "target",
        ],
        rows,
    )


def _cases(known):  # type: ignore[no-untyped-def]
    """Return all cases, or the cases in BENCH_CASES."""
    chosen = os.environ.get("BENCH_CASES")
    return chosen.split(";") if chosen else (*known, AGAIN)


def _sizes() -> tuple[tuple[int, int], ...]:
    """Return all sizes, or the first BENCH_SIZES of them."""
    return SIZES[: int(os.environ.get("BENCH_SIZES", len(SIZES)))]


def _measure(filler, case: str, pending: int, slots: int) -> TickFigures:  # type: ignore[no-untyped-def]
    from django.utils import timezone

    from scheduling.capacity.runtimes.registry import runtime_for
    from scheduling.capacity.tick import scheduling_tick
    from scheduling.metrics import TickMetrics

    pool = filler.fill("READY but full" if case == AGAIN else case, pending=pending, slots=slots)
    if case == AGAIN:
        scheduling_tick(pool, runtime_for(pool), timezone.now, TickMetrics())
    floor = _floor(pool)
    begun, cpu = time.perf_counter(), time.process_time()
    report = scheduling_tick(pool, runtime_for(pool), timezone.now, TickMetrics())
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    assert report is not None
    assert not report.errors, report.errors
    return TickFigures(seconds, cpu, floor, report.step_ms, report.counts)


def _floor(pool) -> float:  # type: ignore[no-untyped-def]
    """Measure reading the queue and writing as many rows as the tick, all with the same values."""
    from django.db import connection, transaction

    from scheduling.models import Phase, Reservation, Slot, SlotState

    slots = Slot.objects.filter(pool=pool)
    placed = slots.filter(state=SlotState.READY, lease_count=0).count()
    waiting = Reservation.objects.filter(pool=pool, phase=Phase.PENDING)
    some_slot = slots.first()
    chosen = list(waiting.values_list("pk", flat=True)[:placed])
    empty = list(slots.filter(state=SlotState.EMPTY).values_list("pk", flat=True))
    query, params = waiting.order_by("-priority", "created_at", "pk").query.sql_with_params()
    begun = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        cursor.fetchall()
    with transaction.atomic():
        if chosen:
            Reservation.objects.filter(pk__in=chosen).update(phase=Phase.READY, slot=some_slot)
        if empty:
            Slot.objects.filter(pk__in=empty).update(state=SlotState.LAUNCHING)
        transaction.set_rollback(True)
    return time.perf_counter() - begun


def _row(case: str, pending: int, slots: int, found: TickFigures, last: TickFigures | None) -> list[str]:
    did = [f"{found.counts[name]:,} {name.replace('_', ' ')}" for name in found.counts if name != "unmet"]
    target = TARGETS.get((case, slots))
    return [
        case,
        f"{pending:,} × {slots:,}",
        f"{found.seconds:.2f}",
        f"{found.cpu:.2f}",
        *(f"{found.step_ms[step]:.0f}" for step in STEPS),
        f"{found.floor:.3f}",
        f"{found.seconds / found.floor:.1f}",
        f"× {found.seconds / last.seconds:.1f}" if last else "",
        ", ".join(did) or "nothing",
        f"< {target:g} s" if target else "",
    ]


if __name__ == "__main__":
    main()
