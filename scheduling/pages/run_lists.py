"""What the list of runs of observers and lifecycle handlers shows."""

from __future__ import annotations

from lcm.web.lists import Column, ListPage
from lcm.web.paging import capped_counts
from lcm.web.wording import counted
from scheduling.filters import RunFilter
from scheduling.models import ObserverRun
from scheduling.selectors.observing import has_failed


def _kept() -> str:
    """“15 runs are kept, none failed.”"""
    rows = ObserverRun.objects.all()
    counts = capped_counts({"all": rows, "failed": rows.filter(has_failed())})
    (count, more), (failed, more_failed) = counts["all"], counts["failed"]
    if not count:
        return "Nothing has run yet."
    kept = f"{'More than ' if more else ''}{counted(count, 'run is', 'runs are')} kept"
    if not failed:
        return f"{kept}, none failed."
    return f"{kept}, {'more than ' if more_failed else ''}{failed:,} failed."


RUNS = ListPage(
    title="Runs",
    noun="run",
    plural="runs",
    rows=ObserverRun.objects.all,
    filterset=RunFilter,
    columns=[
        Column("Observer", lambda row: row.observer),
        Column("Started", lambda row: row.started_at, sort="-started_at"),
        Column(
            "Duration",
            lambda row: row.duration_ms,
            sort="-duration_ms",
            numeric=True,
            export_label="Duration ms",
        ),
        Column("Done", lambda row: row.success_count, numeric=True),
        Column("Stale", lambda row: row.stale_count, numeric=True),
        Column("Skipped", lambda row: row.skipped_count, numeric=True),
        Column("Failed", lambda row: row.failure_count, sort="-failure_count", numeric=True),
        Column("Error", lambda row: row.error),
    ],
    row_template="observers/run_row.html",
    default_sort="-started_at",
    search_hint="Observer, error",
    icon="eye",
    empty_hint="The beat starts each observer and handler at its interval.",
    lead=lambda: f"**{_kept()}** Quiet runs in a row are kept as one.",
)
