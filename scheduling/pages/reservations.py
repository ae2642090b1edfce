"""Reservation pages, the capacity panel of a session, and moving a session to another pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from lcm.domain.roles import Role
from lcm.models import LabletSession
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import sessions
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import ReasonForm
from lcm.web.list_page import list_page
from lcm.web.session_location import SessionLocation
from scheduling.models import Phase
from scheduling.pages.bulk_reservations import CANCEL_BARE
from scheduling.pages.lists import RESERVATIONS
from scheduling.pages.texts import place_text
from scheduling.selectors.lead_time import is_advance_booking
from scheduling.selectors.pools import other_pools
from scheduling.selectors.queue import QueueSnapshot, decisions_of, queue_snapshot
from scheduling.selectors.reservations import parts_of, reservations, reservations_of
from scheduling.services.pool_transfer import move_to_pool
from scheduling.services.reservations import cancel_reservation

DECISIONS_SHOWN = 50


@require_GET
@role_required(Role.VIEWER)
def reservation_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, RESERVATIONS, crumbs=[*_capacity(), (gettext("Reservations"), "")])


@require_GET
@role_required(Role.VIEWER)
def reservation_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """A reservation: its request, its slot and its decisions."""
    reservation = get_object_or_404(reservations().select_related("held_slot__pool"), pk=pk)
    order = queue_snapshot(reservation.pool) if reservation.phase == Phase.PENDING else QueueSnapshot()
    rows = decisions_of(reservation, DECISIONS_SHOWN + 1)
    context = {
        "claim": reservation,
        "parts": parts_of([reservation]).get(pk, []),
        "is_ahead": is_advance_booking(reservation, timezone.now()),
        "place": place_text(order.position_of(pk), len(order), reservation.pool.name),
        "rows": rows[:DECISIONS_SHOWN],
        "more": len(rows) > DECISIONS_SHOWN,
        "changes": changes_of(reservation),
        "crumbs": [*_reservations(), (reservation.short_id, "")],
    }
    return render(request, "capacity/reservation.html", context)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def reservation_cancel(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    reservation = get_object_or_404(reservations(), pk=pk)
    back = reverse("reservation_list")

    def save(data: Mapping[str, Any]) -> FormResult:
        cancel_reservation(
            reservation=reservation, reason=data["reason"], actor=actor_of(request), now=timezone.now()
        )
        return FormResult(gettext("Reservation %(id)s cancelled.") % {"id": reservation.short_id}, back)

    values = {"holder": reservation.holder, "pool": reservation.pool}
    text = gettext("%(holder)s loses its reserved capacity in %(pool)s.") % values
    if not reservation.holder:
        text = gettext("Its session loses its reserved capacity in %(pool)s.") % values
    page = FormPage(
        title=gettext("Cancel reservation %(id)s?") % {"id": reservation.short_id},
        text=text,
        form=ReasonForm,
        submit=gettext("Cancel reservation"),
        danger=True,
        save=save,
        back=back,
        crumbs=[*_reservations(), (reservation.short_id, ""), (gettext("Cancel"), "")],
    )
    return form_page(request, page)


@require_POST
@role_required(Role.OPERATOR)
def reservation_bulk_cancel(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, CANCEL_BARE.name)


def place_of_session(session: LabletSession) -> SessionLocation | None:
    """Return the slot of a session; for a spread session the panel lists several."""
    claim = next(iter(reservations_of(session, limit=1)), None)
    if claim is None:
        return None
    pool_url = reverse("pool_detail", args=[claim.pool_id])
    if claim.phase != Phase.READY or claim.spread or claim.slot is None:
        return SessionLocation(pool_url)
    return SessionLocation(pool_url, claim.slot.name, reverse("slot_detail", args=[claim.slot_id]))


@require_GET
@role_required(Role.VIEWER)
def session_capacity(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Panel of a session's capacity; without JavaScript a page of its own."""
    session = get_object_or_404(LabletSession.objects.only("id", "pool", "status"), pk=pk)
    claims = reservations_of(session, limit=10)
    context = {
        "session": session,
        "claims": claims,
        "parts": [part for parts in parts_of(claims).values() for part in parts],
        "crumbs": [
            (gettext("Sessions"), reverse("session_list")),
            (session.short_id, reverse("session_detail", args=[pk])),
            (gettext("Capacity"), ""),
        ],
    }
    template = "capacity/session.html#panel" if request.htmx else "capacity/session.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _capacity() -> list[tuple[str, str]]:
    return [(gettext("Capacity"), reverse("pool_list"))]


def _reservations() -> list[tuple[str, str]]:
    return [*_capacity(), (gettext("Reservations"), reverse("reservation_list"))]


class SessionPoolForm(ReasonForm):
    """Choose a pool; the service decides whether it suits the session."""

    pool = forms.CharField(label=_("Pool"), max_length=63, widget=forms.Select)
    field_order = ("pool", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["pool"].widget.choices = [(name, name) for name in self.initial["pools"]]


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_pool(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    session = get_object_or_404(sessions(), pk=pk)
    here = reverse("session_detail", args=[pk])
    pools = other_pools(session)

    def save(data: Mapping[str, Any]) -> FormResult:
        move_to_pool(session=session, **data, actor=actor_of(request), now=timezone.now())
        moved = gettext("Session %(session)s moved to %(pool)s.")
        return FormResult(moved % {"session": session.short_id, "pool": session.pool}, here)

    text = gettext("The session is waiting in %(pool)s. It keeps its age and priority.")
    if not pools:
        text = gettext("No other pool for %(system)s is enabled.")
    page = FormPage(
        title=gettext("Move session %(session)s to another pool") % {"session": session.short_id},
        text=text % {"pool": session.pool, "system": session.definition.system},
        form=SessionPoolForm,
        submit=gettext("Move session"),
        save=save,
        back=here,
        initial={"pools": pools},
        crumbs=[
            (gettext("Sessions"), reverse("session_list")),
            (session.short_id, here),
            (gettext("Move"), ""),
        ],
    )
    return form_page(request, page)
