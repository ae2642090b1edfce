"""An observer in its own process: `python -m tests.end_to_end.fairshare.worker_process MODE …`.

`work SECONDS NOW` records and aggregates in turns for a while, without leases, with a clock that advances
each turn, and prints the result as JSON. `hang POINT FILE NOW` works until it reaches a point, creates the
file and waits there to be killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

POINTS = {
    "in the middle of recording": ("fairshare.services.usage_records", "_describe"),
    "in the middle of aggregation": ("fairshare.services.usage_buckets", "_add"),
}


def main(mode: str, *arguments: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")
    import django

    django.setup()
    if mode == "work":
        print(json.dumps(work(float(arguments[0]), datetime.fromisoformat(arguments[1]))))
    else:
        hang_at(arguments[0], Path(arguments[1]))
        while True:
            run_round(datetime.fromisoformat(arguments[2]), Counter())


def work(seconds: float, now: datetime) -> dict[str, int]:
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run_round(now, counts)
        now += timedelta(minutes=3)
    return dict(counts)


def run_round(now: datetime, counts: Counter[str]) -> None:
    from fairshare.services.usage_buckets import aggregate_batches, pending_batches
    from fairshare.services.usage_records import pages, record_page

    for page in pages(50):
        counts["records"] += record_page(page, now=now).records
    for group in pending_batches():
        counts["batches"] += aggregate_batches(group, now=now)


def hang_at(point: str, file: Path) -> None:
    """Replace a function by one that does its work and then hangs inside the transaction."""
    name, function = POINTS[point]
    __import__(name)
    module = sys.modules[name]
    real = getattr(module, function)

    def stop(*arguments: Any) -> None:
        real(*arguments)
        file.touch()
        while True:
            signal.pause()

    setattr(module, function, stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
