"""Pages of the queue, ticks and decisions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from lcm.domain.errors import StateConflict
from lcm.domain.roles import Role
from lcm.models import LabletSession
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_view
from lcm.web.crumbs import session_crumbs
from lcm.web.form_page import render_page
from lcm.web.list_page import list_view
from lcm.web.wording import clock_text
from scheduling.pages.bulk_reservations import CANCEL_WAITING, MOVE_WAITING
from scheduling.pages.queue_lists import DECISIONS, QUEUE, TICKS
from scheduling.pages.texts import counts_text
from scheduling.pages.ticks import annotate_ticks, plugins_of, steps_of
from scheduling.selectors.lead_time import is_advance_booking
from scheduling.selectors.pools import ticks
from scheduling.selectors.queue import decisions
from scheduling.selectors.wait_reasons import WaitExplanation, explain_session

TICKS_SHOWN = 10
DECISIONS_SHOWN = 100
QUEUE_CRUMB = (gettext_lazy("Queue"), reverse_lazy("queue_list"))


queue_list = list_view(QUEUE)
tick_list = list_view(TICKS, crumbs=[QUEUE_CRUMB, (gettext_lazy("Ticks"), "")])
decision_list = list_view(DECISIONS, crumbs=[QUEUE_CRUMB, (gettext_lazy("Decisions"), "")])
queue_bulk_move = bulk_view(MOVE_WAITING, Role.OPERATOR)
queue_bulk_cancel = bulk_view(CANCEL_WAITING, Role.OPERATOR)


@require_GET
@role_required(Role.VIEWER)
def queue_ticks(request: HttpRequest) -> HttpResponseBase:
    """Panel of the recent ticks of all pools."""
    rows = list(ticks().order_by("-started_at", "-pk")[:TICKS_SHOWN])
    annotate_ticks(rows)
    context = {
        "ticks": [(tick, counts_text(tick.counts)) for tick in rows],
        "slowest": max((tick.duration_ms for tick in rows), default=0),
        "now": timezone.now(),
        "of_all": True,
        "crumbs": [QUEUE_CRUMB, (_("Last ticks"), "")],
    }
    return render_page(request, "queue/ticks.html", context, part="panel")


@require_GET
@role_required(Role.VIEWER)
def tick_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    tick = get_object_or_404(ticks(), pk=pk)
    rows = list(decisions().filter(tick_id=pk).order_by("position", "pk")[: DECISIONS_SHOWN + 1])
    at = clock_text(tick.started_at, seconds=True)
    context = {
        "tick": tick,
        "at": at,
        "result": counts_text(tick.counts),
        "steps": steps_of(tick),
        "plugins": plugins_of(tick),
        "decision_columns": DECISIONS.columns,
        "rows": rows[:DECISIONS_SHOWN],
        "more": len(rows) > DECISIONS_SHOWN,
        "crumbs": [QUEUE_CRUMB, (_("Ticks"), reverse("tick_list")), (f"{tick.pool.name}, {at}", "")],
    }
    return render(request, "queue/tick.html", context)


@require_GET
@role_required(Role.VIEWER)
def session_wait_reasons(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Wait reasons of a session as a panel; without JavaScript a page of its own."""
    session = get_object_or_404(_with_names(), pk=pk)
    context = {
        **_wait_context(request, session),
        "crumbs": session_crumbs(session, _("Wait reasons")),
    }
    return render_page(request, "queue/wait_reasons.html", context, part="panel")


def wait_reasons_panel(request: HttpRequest, session: LabletSession) -> SafeString:
    """Return the panel as part of the session's page, which refreshes it."""
    context = {**_wait_context(request, session), "in_page": True}
    return render_to_string("queue/wait_reasons.html#panel", context, request)


def _wait_context(request: HttpRequest, session: LabletSession) -> dict[str, Any]:
    by_slot = request.GET.get("by") == "slot"
    found: WaitExplanation | None = None
    not_waiting = ""
    now = timezone.now()
    try:
        found = explain_session(session, now=now, by_slot=by_slot)
    except StateConflict as error:
        not_waiting = error.message
    return {
        "session": session,
        "why": found,
        "interval": timedelta(seconds=max(settings.CONFIG["TICK_INTERVAL"], 1)),
        "not_waiting": not_waiting,
        "by_slot": by_slot,
        "is_advance_booking": found is not None and is_advance_booking(found.reservation, now),
        "now": now,
    }


def _with_names() -> QuerySet[LabletSession]:
    """Return sessions with the relations that the lead of a page uses."""
    rows = LabletSession.objects.select_related("definition", "owner", "project__domain")
    names = ("definition__name", "owner__username", "project__name", "project__domain__name")
    return rows.only("id", "pool", "status", *names)
