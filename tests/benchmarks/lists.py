"""List pages with many sessions: queries, p95 and ratio to the same page with a thousand."""

from __future__ import annotations

import sys

from tests.benchmarks.measuring import measure_page, print_table, start_django

FLOOR_ROWS = 1_000
ROWS = {"postgresql": 1_000_000, "sqlite": 100_000}
TIMES = 40


def main() -> None:
    start_django()
    from django.db import connection

    from tests.benchmarks.fill_sessions import Filler

    filler = Filler()
    total = ROWS[connection.vendor]
    filler.fill(FLOOR_ROWS)
    floors = {name: measure_page(path, times=TIMES) for name, path in _cases().items()}
    print(f"{connection.vendor}: writing {total:,} sessions …", file=sys.stderr, flush=True)
    filler.fill(total)
    rows = []
    for name, path in _cases().items():
        queries, timing = measure_page(path, times=TIMES)
        ratio = timing.p95 / floors[name][1].p95
        rows.append([name, str(queries), f"{timing.p50:.0f}", f"{timing.p95:.0f}", f"{ratio:.2f}"])
    print_table(
        f"List pages, {total:,} sessions, {connection.vendor}",
        ["page", "queries", "p50 ms", "p95 ms", f"p95 ÷ p95 with {FLOOR_ROWS:,}"],
        rows,
    )


def _cases() -> dict[str, str]:
    from lcm.models import LabletSession

    some = LabletSession.objects.order_by("pk").values_list("pk", flat=True)[0]
    return {
        "first page": "/sessions/",
        "deep page": f"/sessions/?cursor={_deep_cursor('-created_at')}",
        "deep page, by end": f"/sessions/?sort=ends_at&cursor={_deep_cursor('ends_at')}",
        "deep page, by status": f"/sessions/?sort=status&cursor={_deep_cursor('status')}",
        "filter by status": "/sessions/?status=FAILED",
        "filter by two statuses": "/sessions/?status=RUNNING&status=PENDING",
        "filter by domain": "/sessions/?domain=academy",
        "filter that finds nothing": "/sessions/?status=PENDING&pool=no-such-pool",
        "search a definition": "/sessions/?q=bgp",
        "search a person": "/sessions/?q=student-00042",
        "search an id": f"/sessions/?q={str(some)[:8]}",
        "search that finds nothing": "/sessions/?q=no-such-thing",
        "API, first page": "/api/lablet-sessions/",
        "session": f"/sessions/{some}/",
        "definition": f"/definitions/{LabletSession.objects.get(pk=some).definition_id}/",
        "definitions": "/definitions/",
        "change log": "/changes/",
    }


def _deep_cursor(sort: str) -> str:
    """Return the cursor of the page in the middle of the list."""
    from lcm.models import LabletSession
    from lcm.web import pagination

    column, mark = sort.removeprefix("-"), "-" if sort.startswith("-") else ""
    middle = LabletSession.objects.count() // 2
    row = LabletSession.objects.order_by(f"{mark}{column}", f"{mark}pk")[middle]
    return pagination._encode(row, column, middle, backwards=False)


if __name__ == "__main__":
    main()
