"""A worker as a process of its own: `python -m tests.end_to_end.scheduling.worker_process POOL MODE …`.

`work SECONDS LEASE_MS` ticks, launches and reconciles for a while and prints its results as JSON. `hang POINT
FILE` works until it reaches a point, creates the file, and waits there to be killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

MODULES = {
    "inside the placement": ("scheduling.services.assignment", "_write", True),
    "before the placement": ("scheduling.capacity.steps.place", "assign_slots", False),
    "between intent and call": ("tests.end_to_end.scheduling.worker_process", "launch_open", False),
    "between call and record": ("scheduling.capacity.launcher", "record_launch", False),
}


def main(pool_id: str, mode: str, *arguments: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")
    import django

    django.setup()
    if mode == "work":
        print(json.dumps(work(pool_id, float(arguments[0]), float(arguments[1]))))
    else:
        hang_at(arguments[0], Path(arguments[1]))
        while True:
            run_round(pool_id, Counter())


def work(pool_id: str, seconds: float, lease_ms: float) -> dict[str, int]:
    """Tick, launch and reconcile; every third tick has a long lease, so that some ticks finish.

    No thread renews the leases, so that short ones are lost.
    """
    from scheduling.capacity import tick
    from scheduling.coordination import leases

    leases._renewed = nullcontext
    counts: Counter[str] = Counter()
    chance = random.Random()
    end = time.monotonic() + seconds
    for turn in count():
        if time.monotonic() >= end:
            break
        tick.LEASE = timedelta(milliseconds=lease_ms if turn % 3 else 60_000)
        run_round(pool_id, counts)
        # Random pauses, so that the two processes interleave differently each time.
        time.sleep(chance.uniform(0, 0.03))
    return dict(counts)


def run_round(pool_id: str, counts: Counter[str]) -> None:
    from django.utils import timezone

    from scheduling.capacity.reconciler import reconcile_pool
    from scheduling.capacity.runtimes.registry import runtime_for
    from scheduling.capacity.tick import scheduling_tick
    from scheduling.metrics import TickMetrics
    from scheduling.models import Pool

    pool = Pool.objects.get(pk=pool_id)
    runtime = runtime_for(pool)
    report = scheduling_tick(pool, runtime, timezone.now, TickMetrics())
    counts["ticks" if report else "left to the other"] += 1
    if report:
        counts.update(report.counts)
        for step, error in report.errors.items():
            counts["lease lost" if error == "the lease was lost" else f"error in {step}: {error}"] += 1
    sys.modules["tests.end_to_end.scheduling.worker_process"].launch_open(pool, runtime)
    reconciled = reconcile_pool(pool, runtime, timezone.now)
    for error in reconciled.errors if reconciled else []:
        counts[f"error in reconciling: {error}"] += 1


def launch_open(pool: Any, runtime: Any) -> None:
    """Perform all open launches, as if every message had been delivered twice."""
    from django.utils import timezone

    from scheduling.capacity.launcher import perform_launch
    from scheduling.models import AttemptOutcome, LaunchAttempt

    open_attempts = LaunchAttempt.objects.filter(slot__pool=pool, outcome=AttemptOutcome.OPEN)
    for attempt_id in open_attempts.values_list("pk", flat=True):
        perform_launch(attempt_id, runtime, timezone.now)


def hang_at(point: str, file: Path) -> None:
    """Replace a function by one that hangs before or after its work, unless it has no work."""
    name, function, after = MODULES[point]
    __import__(name)
    module = sys.modules[name]
    real: Callable[..., Any] = getattr(module, function)

    def stop(*arguments: Any, **fields: Any) -> Any:
        if function == "launch_open" and not _has_open_attempts():
            return None
        if after:
            real(*arguments, **fields)
        file.touch()
        while True:
            signal.pause()

    setattr(module, function, stop)


def _has_open_attempts() -> bool:
    from scheduling.models import AttemptOutcome, LaunchAttempt

    return LaunchAttempt.objects.filter(outcome=AttemptOutcome.OPEN).exists()


if __name__ == "__main__":
    # Import the module by its own name, so that the loop uses the functions that `hang_at` replaces.
    from tests.end_to_end.scheduling import worker_process

    worker_process.main(*sys.argv[1:])
