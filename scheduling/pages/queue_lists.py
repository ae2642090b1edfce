"""Lists of the queue, of ticks and of decisions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from lcm.domain.roles import Role
from lcm.templatetags.lcm import words
from lcm.web.list_page import BulkAction, Column, ListPage, PageAction
from lcm.web.wording import count_text
from scheduling import filters
from scheduling.pages.ticks import annotate_ticks
from scheduling.selectors import capacity, queue

# Period that the leads of ticks and decisions summarize.
LATELY = timedelta(hours=1)


def _queue_lead() -> str:
    counts = queue.waiting_by_pool(timezone.now())
    total, ahead = (sum(each) for each in zip(*counts.values(), strict=True)) if counts else (0, 0)
    booked = f" {ahead:,} {'is' if ahead == 1 else 'are'} booked ahead." if ahead else ""
    if not total:
        rest = booked or " A new session is placed by the next tick of its pool."
        return f"**Nothing waits.**{rest}"
    listed = ", ".join(f"{count:,} in {pool}" for pool, (count, _) in sorted(counts.items()) if count)
    return f"**{total:,} {'waits' if total == 1 else 'wait'} for a place:** {listed}.{booked}"


def _ticks_lead() -> str:
    failed, slowest = capacity.tick_summary(timezone.now() - LATELY)
    rest = (
        "Each places what waits, launches what is missing and drains what is idle. "
        "Quiet ticks in a row are one line."
    )
    if slowest is None:
        return f"**No tick has run in the last hour.** {rest}"
    ticks = f"{count_text(failed, 'tick')} failed" if failed else "No tick failed"
    return f"**{ticks} in the last hour; the slowest took {slowest:,} ms.** {rest}"


def _decisions_lead() -> str:
    placed, told, more = queue.decided_since(timezone.now() - LATELY)
    rest = "One line each time something new is said."
    if not placed + told:
        return f"**Nothing new was decided in the last hour.** {rest}"
    done = f"{placed:,} {'was' if placed == 1 else 'were'} placed" if placed else "nobody was placed"
    heard = f", {told:,} {'was' if told == 1 else 'were'} told why not" if told else ""
    of = f", counting {placed + told:,} of them" if more else ""
    return f"**In the last hour {done}{heard}{of}.** {rest}"


def factors_text(row: Any) -> str:
    """Format the factors of domain, project and user: “0.603 · 0.526 · 0.610”."""
    if row.standing is None:
        return ""
    return " · ".join(f"{factor:.3f}" for factor in row.standing[:3])


def reason_of(row: Any) -> str:
    if row.decision is None:
        return "No tick has looked at it yet."
    return str(row.decision.why) if row.decision.why else row.decision.get_outcome_display()


QUEUE = ListPage(
    title="Queue",
    noun="reservation in the queue",
    plural="reservations in the queue",
    rows=queue.waiting,
    filterset=filters.QueueFilter,
    columns=[
        Column("#", lambda row: row.position, numeric=True, export_label="Position"),
        Column("For", lambda row: str(row.session_id or row.holder)),
        Column("Owner", lambda row: row.session.owner.username if row.session else ""),
        Column("Pool", lambda row: row.pool.name),
        Column("Priority", lambda row: row.get_priority_display()),
        Column(
            "Factor: domain · project · person",
            factors_text,
            numeric=True,
            export_label="Factor domain project person",
        ),
        Column("Last decision", reason_of),
        Column("Waiting", lambda row: row.waits_from, numeric=True, export_label="Since"),
    ],
    row_template="queue/row.html",
    default_sort="created_at",
    search_hint="Session, definition, owner, project",
    empty_text="Nothing waits",
    icon="queue-list",
    empty_hint="Whoever asks for a session stands here until a tick finds a slot for it.",
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
    order=queue.in_scheduler_order,
    enrich_rows=lambda rows: queue.annotate_waiting(rows, now=timezone.now()),
    live=True,
    template="queue/list.html",
)

TICKS = ListPage(
    title="Ticks",
    noun="tick",
    plural="ticks",
    rows=capacity.ticks,
    filterset=filters.TickFilter,
    columns=[
        Column("Started", lambda row: row.started_at, sort="-started_at"),
        Column("Pool", lambda row: row.pool.name),
        Column("What it did", lambda row: row.did),
        Column(
            "Errors", lambda row: "; ".join(f"{words(step)}: {text}" for step, text in row.errors.items())
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
    noun="decision",
    plural="decisions",
    rows=queue.decisions,
    filterset=filters.DecisionFilter,
    columns=[
        Column("For", lambda row: str(row.reservation.session_id or row.reservation.holder)),
        Column("Pool", lambda row: row.pool.name),
        Column("Outcome", lambda row: row.get_outcome_display()),
        Column("Slot", lambda row: row.slot.name if row.slot else ""),
        Column("Why", lambda row: row.why.sentence if row.why else ""),
        Column("Scores", lambda row: row.scores),
        Column("Position", lambda row: row.position, numeric=True),
        Column("At", lambda row: row.at, sort="-at", numeric=True),
    ],
    row_template="queue/decision_row.html",
    default_sort="-at",
    search_hint="Session, reservation, holder",
    icon="scale",
    empty_hint="A tick writes one for each reservation it says something new about.",
    lead=_decisions_lead,
)
