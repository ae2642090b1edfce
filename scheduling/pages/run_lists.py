"""What the list of runs of observers and lifecycle handlers shows."""

from __future__ import annotations

from lcm.web.lists import Column, ListPage
from scheduling.filters import RunFilter
from scheduling.models import ObserverRun

RUNS = ListPage(
    title="Runs",
    noun="run",
    plural="runs",
    rows=ObserverRun.objects.all,
    filterset=RunFilter,
    columns=[
        Column("Started", lambda row: row.started_at, sort="-started_at"),
        Column("Observer", lambda row: row.observer),
        Column("Duration", lambda row: row.duration_ms, numeric=True, export_label="Duration ms"),
        Column("Done", lambda row: row.success_count, numeric=True),
        Column("Stale", lambda row: row.stale_count, numeric=True),
        Column("Skipped", lambda row: row.skipped_count, numeric=True),
        Column("Failed", lambda row: row.failure_count, numeric=True),
        Column("Error", lambda row: row.error),
    ],
    row_template="observers/run_row.html",
    default_sort="-started_at",
    search_hint="Observer, error",
    icon="eye",
    empty_hint="The beat starts each observer and handler at its interval.",
    lead=lambda: "**What ran by itself, and what came of it.** Quiet runs in a row are one line.",
)
