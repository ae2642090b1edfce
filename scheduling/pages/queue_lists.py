"""Lists of the queue, of ticks and of decisions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import ngettext_lazy

from lcm.domain.roles import Role
from lcm.templatetags.lcm import humanize_name
from lcm.web.list_page import BulkAction, Column, ListPage, PageAction
from lcm.web.wording import Plural, count_text
from scheduling import filters
from scheduling.pages.ticks import annotate_ticks
from scheduling.selectors import queue
from scheduling.selectors.pools import tick_summary, ticks

# Period that the leads of ticks and decisions summarize.
LATELY = timedelta(hours=1)


def _queue_lead() -> str:
    counts = queue.waiting_by_pool(timezone.now())
    total, ahead = (sum(each) for each in zip(*counts.values(), strict=True)) if counts else (0, 0)
    booked = f" {ahead:,} booked." if ahead else ""
    if not total:
        rest = booked or " The next tick of its pool places a new session."
        return f"**0 waiting.**{rest}"
    listed = ", ".join(f"{count:,} in {pool}" for pool, (count, _) in sorted(counts.items()) if count)
    return f"**{total:,} waiting:** {listed}.{booked}"


def _ticks_lead() -> str:
    failed, slowest = tick_summary(timezone.now() - LATELY)
    rest = "A tick places sessions, launches slots and drains idle ones. Consecutive idle ticks are merged."
    if slowest is None:
        return f"**No tick has run in the last hour.** {rest}"
    ticks = f"{count_text(failed, 'tick')} failed" if failed else "No tick failed"
    return f"**{ticks} in the last hour; slowest: {slowest:,} ms.** {rest}"


def _decisions_lead() -> str:
    placed, unplaced, more = queue.decided_since(timezone.now() - LATELY)
    rest = "One row per new outcome."
    if not placed + unplaced:
        return f"**No decisions in the last hour.** {rest}"
    counted = f" (newest {placed + unplaced:,} decisions)" if more else ""
    return f"**Last hour: {placed:,} placed, {unplaced:,} not placed{counted}.** {rest}"


def factors_text(row: Any) -> str:
    """Format the factors of domain, project and user: “0.603 · 0.526 · 0.610”."""
    if row.standing is None:
        return ""
    return " · ".join(f"{factor:.3f}" for factor in row.standing[:3])


def reason_of(row: Any) -> str:
    if row.decision is None:
        return "Not evaluated by a tick yet."
    return str(row.decision.why) if row.decision.why else row.decision.get_outcome_display()


QUEUE = ListPage(
    title="Queue",
    export_name="reservations-in-the-queue",
    counted=Plural(
        ngettext_lazy("%(count)s reservation in the queue", "%(count)s reservations in the queue")
    ),
    search_label="Search reservations in the queue",
    no_match_title="No reservation in the queue matches",
    empty_title="No sessions are waiting",
    rows=queue.waiting,
    filterset=filters.QueueFilter,
    columns=[
        Column("#", lambda row: row.position, numeric=True, export_label="Position"),
        Column("For", lambda row: str(row.session_id or row.holder)),
        Column("Owner", lambda row: row.session.owner.username if row.session else ""),
        Column("Pool", lambda row: row.pool.name),
        Column("Priority", lambda row: row.get_priority_display()),
        Column(
            "Factor: domain · project · user",
            factors_text,
            numeric=True,
            export_label="Factor domain project user",
        ),
        Column("Last decision", reason_of),
        Column("Waiting", lambda row: row.waits_from, numeric=True, export_label="Since"),
    ],
    row_template="queue/row.html",
    default_sort="created_at",
    search_hint="Session, definition, owner, project",
    icon="queue-list",
    empty_hint="New sessions appear here until a slot is assigned.",
    lead=_queue_lead,
    actions=[
        PageAction("Ticks", "tick_list", Role.VIEWER, "clock"),
        PageAction("Decisions", "decision_list", Role.VIEWER, "scale"),
        PageAction("Dry run", "dry_run", Role.OPERATOR, "beaker", primary=True),
    ],
    bulk=[
        BulkAction("Move…", "queue_bulk_move", Role.OPERATOR),
        BulkAction("Cancel…", "queue_bulk_cancel", Role.OPERATOR, danger=True),
    ],
    ordered_keys=queue.in_scheduler_order,
    enrich_rows=lambda rows: queue.annotate_waiting(rows, now=timezone.now()),
    live=True,
    template="queue/list.html",
)

TICKS = ListPage(
    title="Ticks",
    export_name="ticks",
    counted=Plural(ngettext_lazy("%(count)s tick", "%(count)s ticks")),
    search_label="Search ticks",
    no_match_title="No tick matches",
    empty_title="No ticks yet",
    rows=ticks,
    filterset=filters.TickFilter,
    columns=[
        Column("Started", lambda row: row.started_at, sort="-started_at"),
        Column("Pool", lambda row: row.pool.name),
        Column("Result", lambda row: row.did),
        Column(
            "Errors",
            lambda row: "; ".join(f"{humanize_name(step)}: {text}" for step, text in row.errors.items()),
        ),
        Column("Steps", lambda row: row.step_ms),
        Column(
            "Duration",
            lambda row: row.duration_ms,
            sort="-duration_ms",
            numeric=True,
            export_label="Duration ms",
        ),
    ],
    row_template="queue/tick_row.html",
    enrich_rows=annotate_ticks,
    default_sort="-started_at",
    search_hint="Pool",
    icon="clock",
    empty_hint="The beat starts a tick for each pool every few seconds.",
    lead=_ticks_lead,
)

DECISIONS = ListPage(
    title="Decisions",
    export_name="decisions",
    counted=Plural(ngettext_lazy("%(count)s decision", "%(count)s decisions")),
    search_label="Search decisions",
    no_match_title="No decision matches",
    empty_title="No decisions yet",
    rows=queue.decisions,
    filterset=filters.DecisionFilter,
    columns=[
        Column("For", lambda row: str(row.reservation.session_id or row.reservation.holder)),
        Column("Pool", lambda row: row.pool.name),
        Column("Outcome", lambda row: row.get_outcome_display()),
        Column("Slot", lambda row: row.slot.name if row.slot else ""),
        Column("Reason", lambda row: row.why.message if row.why else ""),
        Column("Scores", lambda row: row.scores),
        Column("Position", lambda row: row.position, numeric=True),
        Column("At", lambda row: row.at, sort="-at", numeric=True),
    ],
    row_template="queue/decision_row.html",
    default_sort="-at",
    search_hint="Session, reservation, holder",
    icon="scale",
    empty_hint="A tick records a decision when the outcome of a reservation changes.",
    lead=_decisions_lead,
)
