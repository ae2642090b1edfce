"""Lists of the queue, of ticks and of decisions."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.web.list_columns import Column
from lcm.web.list_page import BulkAction, ListPage, PageAction
from lcm.web.pagination import OrderedKeys
from lcm.web.wording import Plural
from scheduling import filters
from scheduling.models import Reservation
from scheduling.pages.texts import booked_text, waiting_text
from scheduling.pages.ticks import annotate_ticks, step_name
from scheduling.selectors import queue
from scheduling.selectors.pools import tick_summary, ticks

# Period that the leads of ticks and decisions summarize.
SUMMARY_PERIOD = timedelta(hours=1)


def _queue_lead() -> str:
    counts = queue.waiting_by_pool(timezone.now())
    total, booked_count = (sum(each) for each in zip(*counts.values(), strict=True)) if counts else (0, 0)
    booked = f"{booked_text(booked_count)}." if booked_count else ""
    if not total:
        rest = booked or gettext("The next tick of its pool places a new session.")
        return f"**{waiting_text(0)}.** {rest}"
    listed = [
        gettext("%(count)s in %(pool)s") % {"count": f"{waiting:,}", "pool": pool}
        for pool, (waiting, _booked) in sorted(counts.items())
        if waiting
    ]
    lead = ngettext("**%(count)s waiting:** %(pools)s.", "**%(count)s waiting:** %(pools)s.", total)
    return f"{lead % {'count': f'{total:,}', 'pools': ', '.join(listed)}} {booked}".rstrip()


def _ticks_lead() -> str:
    failed, slowest = tick_summary(timezone.now() - SUMMARY_PERIOD)
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
    placed, unplaced, more = queue.decided_since(timezone.now() - SUMMARY_PERIOD)
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
    if row.factors is None:
        return ""
    return " · ".join(f"{factor:.3f}" for factor in row.factors[:3])


def reason_of(row: Any) -> str:
    if row.decision is None:
        return gettext("Not evaluated by a tick yet.")
    return str(row.decision.why) if row.decision.why else row.decision.get_outcome_display()


def _in_scheduler_order(rows: QuerySet[Reservation]) -> OrderedKeys:
    now = timezone.now()
    found = queue.in_scheduler_order(rows, now=now)
    enrich = partial(queue.annotate_waiting, orders=found.orders, now=now)
    return OrderedKeys(found.keys, found.booked, enrich)


QUEUE = ListPage(
    title=_("Queue"),
    export_name="reservations-in-the-queue",
    counted=Plural(
        ngettext_lazy("%(count)s reservation in the queue", "%(count)s reservations in the queue")
    ),
    counted_apart=booked_text,
    search_label=_("Search reservations in the queue"),
    no_match_title=_("No reservation in the queue matches"),
    empty_title=_("No sessions are waiting"),
    rows=queue.waiting,
    filterset=filters.QueueFilter,
    columns=[
        Column(
            "#",
            lambda row: row.position,
            numeric=True,
            export_label=_("Position"),
            css="fit-content card-corner",
            cell="position",
            empty="",
            phone="side",
        ),
        Column(_("For"), lambda row: str(row.session_id or row.holder), css="card-title", cell="for"),
        Column(
            _("Owner"),
            lambda row: row.session.owner.username if row.session else "",
            cell="owner",
            empty=_("no session"),
            phone="below",
        ),
        Column(_("Pool"), lambda row: row.pool.name, cell="capacity/reservation_cells.html#pool"),
        Column(_("Priority"), lambda row: row.get_priority_display()),
        Column(
            _("Factor: domain · project · user"),
            factors_text,
            numeric=True,
            export_label=_("Factor domain project user"),
            css="wide",
        ),
        Column(_("Last decision"), reason_of, css="wide", cell="decision"),
        Column(
            _("Waiting"),
            lambda row: row.waits_from,
            numeric=True,
            export_label=_("Since"),
            css="wide",
            cell="waiting",
            phone="end",
        ),
    ],
    cells="queue/cells.html",
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
    ordered_keys=_in_scheduler_order,
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
        Column(_("Started"), lambda row: row.started_at, sort="-started_at", cell="started"),
        Column(
            _("Pool"), lambda row: row.pool.name, cell="capacity/reservation_cells.html#pool", phone="end"
        ),
        Column(_("Result"), lambda row: row.result, css="wide", cell="result", empty="", phone="below"),
        Column(
            _("Errors"),
            lambda row: "; ".join(f"{step_name(step)}: {text}" for step, text in row.errors.items()),
            css="wide",
            cell="errors",
        ),
        Column(_("Steps"), lambda row: row.step_ms, css="wide col-steps", cell="steps", empty=""),
        Column(
            _("Duration"),
            lambda row: row.duration_ms,
            sort="-duration_ms",
            numeric=True,
            export_label=_("Duration ms"),
            unit="ms",
            phone="side",
        ),
    ],
    cells="queue/tick_cells.html",
    template="queue/tick_list.html",
    enrich_rows=annotate_ticks,
    default_sort="-started_at",
    search_hint=_("Pool"),
    icon="clock",
    empty_hint=_("Beat starts a tick for each pool every few seconds."),
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
        Column(_("For"), lambda row: str(row.reservation.session_id or row.reservation.holder), cell="for"),
        Column(
            _("Pool"), lambda row: row.pool.name, cell="capacity/reservation_cells.html#pool", phone="below"
        ),
        Column(_("Outcome"), lambda row: row.get_outcome_display(), cell="outcome", phone="side"),
        Column(
            _("Slot"),
            lambda row: row.slot.name if row.slot else "",
            cell="capacity/reservation_cells.html#slot",
        ),
        Column(
            _("Reason"), lambda row: row.why.message if row.why else "", css="wide", cell="reason", empty=""
        ),
        Column(_("Scores"), lambda row: row.scores, css="wide", cell="scores"),
        Column(_("Position"), lambda row: row.position, numeric=True),
        Column(_("At"), lambda row: row.at, sort="-at", numeric=True, cell="at", phone="end"),
    ],
    cells="queue/decision_cells.html",
    default_sort="-at",
    search_hint=_("Session, reservation, holder"),
    icon="scale",
    empty_hint=_("A tick records a decision when the outcome of a reservation changes."),
    lead=_decisions_lead,
)
