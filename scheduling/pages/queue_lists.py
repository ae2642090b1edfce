"""Lists of the queue, of ticks and of decisions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.web.list_page import BulkAction, Column, ListPage, PageAction
from lcm.web.wording import Plural
from scheduling import filters
from scheduling.pages.texts import booked_text, waiting_text
from scheduling.pages.ticks import annotate_ticks, step_name
from scheduling.selectors import queue
from scheduling.selectors.pools import tick_summary, ticks

# Period that the leads of ticks and decisions summarize.
LATELY = timedelta(hours=1)


def _queue_lead() -> str:
    counts = queue.waiting_by_pool(timezone.now())
    total, ahead = (sum(each) for each in zip(*counts.values(), strict=True)) if counts else (0, 0)
    booked = f"{booked_text(ahead)}." if ahead else ""
    if not total:
        rest = booked or gettext("The next tick of its pool places a new session.")
        return f"**{waiting_text(0)}.** {rest}"
    listed = [
        gettext("%(count)s in %(pool)s") % {"count": f"{waiting:,}", "pool": pool}
        for pool, (waiting, _ahead) in sorted(counts.items())
        if waiting
    ]
    lead = ngettext("**%(count)s waiting:** %(pools)s.", "**%(count)s waiting:** %(pools)s.", total)
    return f"{lead % {'count': f'{total:,}', 'pools': ', '.join(listed)}} {booked}".rstrip()


def _ticks_lead() -> str:
    failed, slowest = tick_summary(timezone.now() - LATELY)
    rest = gettext(
        "A tick places sessions, launches slots and drains idle ones. Consecutive idle ticks are merged."
    )
    if slowest is None:
        return f"{gettext('**No tick has run in the last hour.**')} {rest}"
    values = {"count": f"{failed:,}", "slowest": f"{slowest:,}"}
    if not failed:
        first = gettext("**No tick failed in the last hour; slowest: %(slowest)s ms.**")
    else:
        first = ngettext(
            "**%(count)s tick failed in the last hour; slowest: %(slowest)s ms.**",
            "**%(count)s ticks failed in the last hour; slowest: %(slowest)s ms.**",
            failed,
        )
    return f"{first % values} {rest}"


def _decisions_lead() -> str:
    placed, unplaced, more = queue.decided_since(timezone.now() - LATELY)
    rest = gettext("One row per new outcome.")
    if not placed + unplaced:
        return f"{gettext('**No decisions in the last hour.**')} {rest}"
    first = gettext("**Last hour: %(placed)s placed, %(unplaced)s not placed.**")
    if more:
        first = gettext(
            "**Last hour: %(placed)s placed, %(unplaced)s not placed (newest %(count)s decisions).**"
        )
    values = {
        "placed": f"{placed:,}",
        "unplaced": f"{unplaced:,}",
        "count": f"{placed + unplaced:,}",
    }
    return f"{first % values} {rest}"


def factors_text(row: Any) -> str:
    """Format the factors of domain, project and user: “0.603 · 0.526 · 0.610”."""
    if row.standing is None:
        return ""
    return " · ".join(f"{factor:.3f}" for factor in row.standing[:3])


def reason_of(row: Any) -> str:
    if row.decision is None:
        return gettext("Not evaluated by a tick yet.")
    return str(row.decision.why) if row.decision.why else row.decision.get_outcome_display()


QUEUE = ListPage(
    title=_("Queue"),
    export_name="reservations-in-the-queue",
    counted=Plural(
        ngettext_lazy("%(count)s reservation in the queue", "%(count)s reservations in the queue")
    ),
    search_label=_("Search reservations in the queue"),
    no_match_title=_("No reservation in the queue matches"),
    empty_title=_("No sessions are waiting"),
    rows=queue.waiting,
    filterset=filters.QueueFilter,
    columns=[
        Column("#", lambda row: row.position, numeric=True, export_label=_("Position")),
        Column(_("For"), lambda row: str(row.session_id or row.holder)),
        Column(_("Owner"), lambda row: row.session.owner.username if row.session else ""),
        Column(_("Pool"), lambda row: row.pool.name),
        Column(_("Priority"), lambda row: row.get_priority_display()),
        Column(
            _("Factor: domain · project · user"),
            factors_text,
            numeric=True,
            export_label=_("Factor domain project user"),
        ),
        Column(_("Last decision"), reason_of),
        Column(_("Waiting"), lambda row: row.waits_from, numeric=True, export_label=_("Since")),
    ],
    row_template="queue/row.html",
    default_sort="created_at",
    search_hint=_("Session, definition, owner, project"),
    icon="queue-list",
    empty_hint=_("New sessions appear here until a slot is assigned."),
    lead=_queue_lead,
    actions=[
        PageAction(_("Ticks"), "tick_list", Role.VIEWER, "clock"),
        PageAction(_("Decisions"), "decision_list", Role.VIEWER, "scale"),
        PageAction(_("Dry run"), "dry_run", Role.OPERATOR, "beaker", primary=True),
    ],
    bulk=[
        BulkAction(_("Move…"), "queue_bulk_move", Role.OPERATOR),
        BulkAction(_("Cancel…"), "queue_bulk_cancel", Role.OPERATOR, danger=True),
    ],
    ordered_keys=queue.in_scheduler_order,
    enrich_rows=lambda rows: queue.annotate_waiting(rows, now=timezone.now()),
    live=True,
    template="queue/list.html",
)

TICKS = ListPage(
    title=_("Ticks"),
    export_name="ticks",
    counted=Plural(ngettext_lazy("%(count)s tick", "%(count)s ticks")),
    search_label=_("Search ticks"),
    no_match_title=_("No tick matches"),
    empty_title=_("No ticks yet"),
    rows=ticks,
    filterset=filters.TickFilter,
    columns=[
        Column(_("Started"), lambda row: row.started_at, sort="-started_at"),
        Column(_("Pool"), lambda row: row.pool.name),
        Column(_("Result"), lambda row: row.did),
        Column(
            _("Errors"),
            lambda row: "; ".join(f"{step_name(step)}: {text}" for step, text in row.errors.items()),
        ),
        Column(_("Steps"), lambda row: row.step_ms),
        Column(
            _("Duration"),
            lambda row: row.duration_ms,
            sort="-duration_ms",
            numeric=True,
            export_label=_("Duration ms"),
        ),
    ],
    row_template="queue/tick_row.html",
    enrich_rows=annotate_ticks,
    default_sort="-started_at",
    search_hint=_("Pool"),
    icon="clock",
    empty_hint=_("The beat starts a tick for each pool every few seconds."),
    lead=_ticks_lead,
)

DECISIONS = ListPage(
    title=_("Decisions"),
    export_name="decisions",
    counted=Plural(ngettext_lazy("%(count)s decision", "%(count)s decisions")),
    search_label=_("Search decisions"),
    no_match_title=_("No decision matches"),
    empty_title=_("No decisions yet"),
    rows=queue.decisions,
    filterset=filters.DecisionFilter,
    columns=[
        Column(_("For"), lambda row: str(row.reservation.session_id or row.reservation.holder)),
        Column(_("Pool"), lambda row: row.pool.name),
        Column(_("Outcome"), lambda row: row.get_outcome_display()),
        Column(_("Slot"), lambda row: row.slot.name if row.slot else ""),
        Column(_("Reason"), lambda row: row.why.message if row.why else ""),
        Column(_("Scores"), lambda row: row.scores),
        Column(_("Position"), lambda row: row.position, numeric=True),
        Column(_("At"), lambda row: row.at, sort="-at", numeric=True),
    ],
    row_template="queue/decision_row.html",
    default_sort="-at",
    search_hint=_("Session, reservation, holder"),
    icon="scale",
    empty_hint=_("A tick records a decision when the outcome of a reservation changes."),
    lead=_decisions_lead,
)
