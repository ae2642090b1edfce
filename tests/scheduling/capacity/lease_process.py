"""A lease holder: `python -m tests.scheduling.capacity.lease_process WORK SECONDS REACHED GO [POOL]`.

The work is `handler` (a run of `expire-pending`) or `tick`; the lease lasts SECONDS. In the middle of the
work the process writes the id of its database connection into REACHED and waits for the file GO. At the end
it prints the error of the run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any


def main(work: str, seconds: str, reached: str, go: str, *pool: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")
    import django

    django.setup()
    length = timedelta(seconds=float(seconds))
    print(WORK[work](length, lambda: wait(Path(reached), Path(go)), *pool))


def wait(reached: Path, go: Path) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        # Written and renamed, so that no reader finds half of it.
        reached.with_suffix(".new").write_text(str(cursor.fetchone()[0]))
    reached.with_suffix(".new").rename(reached)
    while not go.exists():
        time.sleep(0.01)


def run_handler(length: timedelta, pause: Callable[[], None]) -> str:
    from scheduling.coordination import coordinator
    from scheduling.coordination.handlers.timeslots import ExpirePending

    coordinator.LEASE = length
    decide = ExpirePending.execute

    def execute(*arguments: Any) -> Any:
        outcome = decide(*arguments)
        pause()
        return outcome

    ExpirePending.execute = execute  # type: ignore[method-assign]
    result = coordinator.process_handler("expire-pending")
    assert result is not None
    return result.error


def run_tick(length: timedelta, pause: Callable[[], None], pool_id: str) -> str:
    from django.utils import timezone

    from scheduling.capacity import tick
    from scheduling.capacity.runtimes.registry import runtime_for
    from scheduling.metrics import TickMetrics
    from scheduling.models import Pool

    tick.LEASE = length
    tick.STEPS = (("pause", lambda _: pause()), *tick.STEPS)
    pool = Pool.objects.get(pk=pool_id)
    report = tick.scheduling_tick(pool, runtime_for(pool), timezone.now, TickMetrics())
    assert report is not None
    return str(report.errors)


WORK: dict[str, Callable[..., str]] = {"handler": run_handler, "tick": run_tick}


if __name__ == "__main__":
    main(*sys.argv[1:])
