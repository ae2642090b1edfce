"""Pages of the queue, ticks and decisions."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.errors import StateConflict
from lcm.domain.roles import Role
from lcm.models import LabletSession
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.list_page import list_page
from lcm.web.wording import clock_text
from scheduling.pages.bulk_reservations import CANCEL_WAITING, MOVE_WAITING
from scheduling.pages.queue_lists import DECISIONS, QUEUE, TICKS
from scheduling.pages.texts import counts_text
from scheduling.pages.ticks import LEGEND, annotate_ticks, plugins_of, steps_of
from scheduling.selectors.lead_time import is_advance_booking
from scheduling.selectors.pools import ticks
from scheduling.selectors.queue import decisions
from scheduling.selectors.wait_reasons import WaitExplanation, explain_session

TICKS_SHOWN = 10
DECISIONS_SHOWN = 100


@require_GET
@role_required(Role.VIEWER)
def queue_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, QUEUE)


@require_POST
@role_required(Role.OPERATOR)
def queue_bulk_move(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, MOVE_WAITING.name)


@require_POST
@role_required(Role.OPERATOR)
def queue_bulk_cancel(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, CANCEL_WAITING.name)


@require_GET
@role_required(Role.VIEWER)
def queue_ticks(request: HttpRequest) -> HttpResponseBase:
    """Panel of the recent ticks of all pools."""
    rows = list(ticks().order_by("-started_at", "-pk")[:TICKS_SHOWN])
    annotate_ticks(rows)
    context = {
        "ticks": [(tick, counts_text(tick.counts)) for tick in rows],
        "slowest": max((tick.duration_ms for tick in rows), default=0),
        "legend": LEGEND,
        "now": timezone.now(),
        "of_all": True,
        "crumbs": [*_queue(), (_("Last ticks"), "")],
    }
    template = "queue/ticks.html#panel" if request.htmx else "queue/ticks.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_GET
@role_required(Role.VIEWER)
def tick_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, TICKS, crumbs=[*_queue(), (_("Ticks"), "")])


@require_GET
@role_required(Role.VIEWER)
def tick_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    tick = get_object_or_404(ticks(), pk=pk)
    rows = list(decisions().filter(tick_id=pk).order_by("position", "pk")[: DECISIONS_SHOWN + 1])
    at = clock_text(tick.started_at, seconds=True)
    context = {
        "tick": tick,
        "at": at,
        "did": counts_text(tick.counts),
        "steps": steps_of(tick),
        "plugins": plugins_of(tick),
        "rows": rows[:DECISIONS_SHOWN],
        "more": len(rows) > DECISIONS_SHOWN,
        "crumbs": [*_queue(), (_("Ticks"), reverse("tick_list")), (f"{tick.pool.name}, {at}", "")],
    }
    return render(request, "queue/tick.html", context)


@require_GET
@role_required(Role.VIEWER)
def decision_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, DECISIONS, crumbs=[*_queue(), (_("Decisions"), "")])


@require_GET
@role_required(Role.VIEWER)
def session_wait_reasons(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Wait reasons of a session as a panel; without JavaScript a page of its own."""
    session = get_object_or_404(_with_names(), pk=pk)
    by_slot = request.GET.get("by") == "slot"
    found: WaitExplanation | None = None
    gone = ""
    now = timezone.now()
    try:
        found = explain_session(session, now=now, by_slot=by_slot)
    except StateConflict as error:
        gone = error.message
    context = {
        "session": session,
        "why": found,
        "gone": gone,
        "by_slot": by_slot,
        "is_ahead": found is not None and is_advance_booking(found.reservation, now),
        "now": now,
        "crumbs": [
            (_("Sessions"), reverse("session_list")),
            (session.short_id, reverse("session_detail", args=[pk])),
            (_("Wait reasons"), ""),
        ],
    }
    template = "queue/wait_reasons.html#panel" if request.htmx else "queue/wait_reasons.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _with_names() -> QuerySet[LabletSession]:
    """Return sessions with the relations that the lead of a page uses."""
    rows = LabletSession.objects.select_related("definition", "owner", "project__domain")
    names = ("definition__name", "owner__username", "project__name", "project__domain__name")
    return rows.only("id", "pool", "status", *names)


def _queue() -> list[tuple[str, str]]:
    """Return the first breadcrumb of queue pages."""
    return [(_("Queue"), reverse("queue_list"))]
