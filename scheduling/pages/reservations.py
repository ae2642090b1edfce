"""Reservation pages, the capacity panel of a session, and moving a session to another pool."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.models import LabletSession
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import sessions
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_view
from lcm.web.crumbs import session_crumbs
from lcm.web.form_page import FormPage, form_view, render_page, service_call
from lcm.web.forms import ReasonForm
from lcm.web.list_page import list_view
from lcm.web.session_location import SessionLocation
from scheduling.models import Phase
from scheduling.pages.bulk_reservations import CANCEL_BARE
from scheduling.pages.lists import RESERVATIONS
from scheduling.pages.queue_lists import DECISIONS
from scheduling.pages.texts import position_text
from scheduling.selectors.lead_time import is_advance_booking
from scheduling.selectors.pools import other_pools
from scheduling.selectors.queue import QueueSnapshot, decisions_of, queue_snapshot
from scheduling.selectors.reservations import parts_of, reservations, reservations_of
from scheduling.selectors.session_access import slot_warnings
from scheduling.services.pool_transfer import move_to_pool
from scheduling.services.reservations import cancel_reservation

DECISIONS_SHOWN = 50


reservation_list = list_view(
    RESERVATIONS, crumbs=[(_("Capacity"), reverse_lazy("pool_list")), (_("Reservations"), "")]
)


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
        "place": position_text(order.position_of(pk), len(order), reservation.pool.name),
        "decision_columns": DECISIONS.columns,
        "rows": rows[:DECISIONS_SHOWN],
        "more": len(rows) > DECISIONS_SHOWN,
        "changes": changes_of(reservation),
        "crumbs": [*_reservations(), (reservation.short_id, "")],
    }
    return render(request, "capacity/reservation.html", context)


@form_view(Role.OPERATOR)
def reservation_cancel(request: HttpRequest, pk: UUID) -> FormPage:
    reservation = get_object_or_404(reservations(), pk=pk)
    back = reverse("reservation_list")

    values = {"holder": reservation.holder, "pool": reservation.pool}
    text = gettext("%(holder)s loses its reserved capacity in %(pool)s.") % values
    if not reservation.holder:
        text = gettext("Its session loses its reserved capacity in %(pool)s.") % values
    return FormPage(
        title=gettext("Cancel reservation %(id)s?") % {"id": reservation.short_id},
        text=text,
        submit=gettext("Cancel reservation"),
        danger=True,
        save=service_call(request, cancel_reservation, reservation=reservation),
        done=gettext("Reservation %(id)s cancelled.") % {"id": reservation.short_id},
        back=back,
        crumbs=[*_reservations(), (reservation.short_id, ""), (gettext("Cancel"), "")],
    )


reservation_bulk_cancel = bulk_view(CANCEL_BARE, Role.OPERATOR)


def location_of_session(session: LabletSession) -> SessionLocation | None:
    """Return the slot of a session; for a spread session the panel lists several."""
    claim = next(iter(reservations_of(session, limit=1)), None)
    if claim is None:
        return None
    pool_url = reverse("pool_detail", args=[claim.pool_id])
    if claim.phase != Phase.READY or claim.slot is None:
        return SessionLocation(pool_url)
    now = timezone.now()
    if claim.spread:
        slots = [part.slot for part in parts_of([claim]).get(claim.pk, [])]
        return SessionLocation(pool_url, warnings=slot_warnings(session, slots, now=now))
    warnings = slot_warnings(session, [claim.slot], now=now)
    return SessionLocation(pool_url, claim.slot.name, reverse("slot_detail", args=[claim.slot_id]), warnings)


@require_GET
@role_required(Role.VIEWER)
def session_capacity(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Panel of a session's capacity; without JavaScript a page of its own."""
    session = get_object_or_404(LabletSession.objects.only("id", "pool", "status"), pk=pk)
    context = {**_capacity_context(session), "crumbs": session_crumbs(session, gettext("Capacity"))}
    return render_page(request, "capacity/session.html", context, part="panel")


def capacity_panel(request: HttpRequest, session: LabletSession) -> SafeString:
    """Return the panel as part of the session's page."""
    return render_to_string("capacity/session.html#panel", _capacity_context(session), request)


def _capacity_context(session: LabletSession) -> dict[str, Any]:
    claims = reservations_of(session, limit=10)
    parts = [part for parts in parts_of(claims).values() for part in parts]
    return {"session": session, "claims": claims, "parts": parts}


def _reservations() -> list[tuple[str, str]]:
    return [
        (gettext("Capacity"), reverse("pool_list")),
        (gettext("Reservations"), reverse("reservation_list")),
    ]


class SessionPoolForm(ReasonForm):
    """Choose a pool; the service decides whether it suits the session."""

    pool = forms.CharField(label=_("Pool"), max_length=63, widget=forms.Select)
    field_order = ("pool", "reason")

    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["pool"].widget.choices = [(name, name) for name in self.initial["pools"]]


@form_view(Role.OPERATOR)
def session_pool(request: HttpRequest, pk: UUID) -> FormPage:
    session = get_object_or_404(sessions(), pk=pk)
    pools = other_pools(session)

    text = gettext("The session is waiting in %(pool)s. It keeps its age and priority.")
    if not pools:
        text = gettext("No other pool for %(system)s is enabled.")
    return FormPage(
        title=gettext("Move session %(session)s to another pool") % {"session": session.short_id},
        text=text % {"pool": session.pool, "system": session.definition.system},
        form=SessionPoolForm,
        submit=gettext("Move session"),
        save=service_call(request, move_to_pool, session=session),
        done=lambda _saved: (
            gettext("Session %(session)s moved to %(pool)s.")
            % {"session": session.short_id, "pool": session.pool}
        ),
        initial={"pools": pools},
        crumbs=session_crumbs(session, gettext("Move")),
    )
