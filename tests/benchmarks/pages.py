"""Every page of a full fleet: queries and p95, compared with their limits.

`BENCH_SCALE=0.01` makes the fleet a hundred times smaller.
"""

from __future__ import annotations

import os
import re
import sys
import time
from datetime import timedelta
from typing import Any

from tests.benchmarks.measuring import measure_page, print_table, start_django
from tests.support.page_list import LISTS, PANELS, filled_paths

LIST_QUERIES, DETAIL_QUERIES, P95_MS = 12, 20, 150
TIMES = 20
SQLITE_SHARE = 0.1
# Fair-share tree with the people of a project, and usage of all people before and after aggregation.
SHARES = [
    "/fair-share/?pool=cml-eu&open={shared},{project}",
    "/fair-share/?pool=cml-eu&q=student",
    "/usage/?pool=cml-eu&level=user&resource=gpu",
    "/usage/?pool=cml-eu&level=user",
]


def main() -> None:
    start_django()
    from django.db import connection

    from tests.benchmarks.fill_fleet import Size, fill_fleet

    share = float(os.environ.get("BENCH_SCALE", "1"))
    if connection.vendor != "postgresql":
        share *= SQLITE_SHARE
    size = Size(1_000_000, 100_000, 5_000, 10_000).scaled(share)
    print(f"{connection.vendor}: writing {size} …", file=sys.stderr, flush=True)
    fill_fleet(size)
    seconds = _sum_usage()
    rows = [_row(path) for path in _paths()]
    over = [row for row in rows if row[-1]]
    print_table(
        f"Every page, {size.sessions:,} sessions, {size.users:,} people, {size.slots:,} slots, "
        f"{size.definitions:,} definitions, {connection.vendor}",
        ["page", "queries", "p50 ms", "p95 ms", "over the limit"],
        rows,
    )
    print(f"\nA worker sums the usage of all people in {seconds:.1f} s.")
    print(f"{len(rows) - len(over)} of {len(rows)} pages are within their limits.")


def _sum_usage() -> float:
    """Sum the usage of all people, as a worker does for the usage page."""
    from django.utils import timezone

    from fairshare.selectors.usage import Period
    from fairshare.services.usage_totals import UsageQuery, cache_totals

    now = timezone.now()
    period = Period(now.date() - timedelta(days=27), now.date(), "cml-eu")
    begun = time.perf_counter()
    cache_totals(UsageQuery(period, "user", "cpu_cores"), now=now)
    return time.perf_counter() - begun


def _row(path: str) -> list[str]:
    queries, timing = measure_page(path, times=TIMES)
    most = DETAIL_QUERIES if re.search(r"[0-9a-f]{8}-|/\d+/", path.partition("?")[0]) else LIST_QUERIES
    over = [
        words
        for words, wrong in ((f"queries > {most}", queries > most), (f"p95 > {P95_MS}", timing.p95 > P95_MS))
        if wrong
    ]
    name = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "…", path)
    return [name, str(queries), f"{timing.p50:.0f}", f"{timing.p95:.0f}", ", ".join(over)]


def _paths() -> list[str]:
    """Return the pages of the browser tests and their panels, with ids of existing objects."""
    from lcm.domain.lifecycle import SessionStatus
    from lcm.models import ApiToken, ChangeLog, Domain, Job, LabletDefinition, LabletSession, Project, User
    from observations.models import DriftReview
    from scheduling.models import Pool, Reservation, Slot, SlotState, TickRun

    def one(rows: Any) -> str:
        return str(rows.order_by("pk").values_list("pk", flat=True)[0])

    places = {
        "session": one(LabletSession.objects.filter(status=SessionStatus.RUNNING)),
        "waiting": one(LabletSession.objects.filter(status=SessionStatus.PENDING)),
        "definition": one(LabletDefinition.objects.all()),
        "domain": one(Domain.objects.all()),
        "project": one(Project.objects.all()),
        "pool": one(Pool.objects.filter(name="pool-0")),
        "slot": one(Slot.objects.filter(state=SlotState.READY)),
        "tick": one(TickRun.objects.all()),
        "reservation": one(Reservation.objects.all()),
        "change": one(ChangeLog.objects.all()),
        "person": one(User.objects.filter(username__startswith="student")),
        "drift": one(DriftReview.objects.all()),
        "token": one(ApiToken.objects.all()),
        "job": one(Job.objects.all()),
    }
    assert set(places) == set(LISTS)
    places["shared"] = str(Project.objects.get(pk=places["project"]).domain_id)
    return [*filled_paths(places), *(panel.format(**places) for panel in (*PANELS, *SHARES))]


if __name__ == "__main__":
    main()
