"""Slot pages: the list, the detail page and the actions of an Operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_view
from lcm.web.form_page import FormPage, form_view, service_call
from lcm.web.forms import ReasonForm
from lcm.web.label_fields import LabelsField
from lcm.web.list_page import list_view
from scheduling.capacity.port_ranges import ranges
from scheduling.models import (
    DRAINABLE,
    LIVE,
    Pool,
    PortAllocation,
    Reservation,
    ReservationPart,
    Slot,
    SlotState,
)
from scheduling.pages.bulk_slots import CORDON, DRAIN, RETRY, UNCORDON
from scheduling.pages.lists import SLOTS
from scheduling.pages.pool_board import meters_of
from scheduling.pages.texts import occupants_text, slot_notices, slot_sentence
from scheduling.selectors.reservations import parts_of, reservations_on, slot_occupancy
from scheduling.selectors.slots import attempts_of, ports_of, slot_allocations, slots
from scheduling.selectors.timelines import recent_entries
from scheduling.services import slots as services

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LEASES_SHOWN = 50
ATTEMPTS_SHOWN = 10
MAX_PORTS = 600
# Entries of the timeline on the page of a slot, and the period of entries of its sessions.
ENTRIES_SHOWN = 20
RECENT = timedelta(days=7)


slot_list = list_view(SLOTS, crumbs=[(_("Capacity"), reverse_lazy("pool_list")), (_("Slots"), "")])


@require_GET
@role_required(Role.VIEWER)
def slot_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    slot, now = _get(pk), timezone.now()
    ports = ports_of(slot)
    context = {
        "slot": slot,
        "sentence": slot_sentence(slot, now=now),
        "notices": list(slot_notices(slot, now=now)),
        "meters": meters_of(slot, slot_allocations(slot.pool, [slot])[slot.pk]),
        "claims": reservations_on_slot(slot, ports, limit=LEASES_SHOWN),
        "ports": port_map(slot.pool, ports),
        "attempts": attempts_of(slot, ATTEMPTS_SHOWN),
        "changes": recent_entries(slot, start=now - RECENT, end=now, limit=ENTRIES_SHOWN),
        "can": {
            "cordon": slot.state in LIVE and not slot.cordoned,
            "uncordon": slot.state in LIVE and slot.cordoned,
            "drain": slot.state in DRAINABLE,
            "cancel_drain": services.can_cancel_drain(slot),
            "label": slot.state in LIVE,
            "retry": slot.state == SlotState.ERROR and not slot.lease_count,
            "terminate": slot.state in LIVE and not slot.lease_count,
        },
        "crumbs": [*slot_crumbs(slot)[:2], (slot.name, "")],
    }
    return render(request, "capacity/slot.html", context)


@form_view(Role.OPERATOR)
def slot_cordon(request: HttpRequest, pk: UUID) -> FormPage:
    slot = _get(pk)
    effect = gettext("The slot gets no new sessions and is not drained when idle.")
    return _action_form(
        request,
        slot,
        gettext("Cordon %(slot)s?"),
        gettext("Cordon slot"),
        gettext("%(slot)s is cordoned."),
        text=f"{effect} {occupants_text(slot_occupancy(slot))}",
        work=partial(services.cordon_slot, cordoned=True),
    )


@form_view(Role.OPERATOR)
def slot_uncordon(request: HttpRequest, pk: UUID) -> FormPage:
    return _action_form(
        request,
        _get(pk),
        gettext("Uncordon %(slot)s?"),
        gettext("Uncordon slot"),
        gettext("%(slot)s is uncordoned."),
        text=gettext("The slot can get sessions again."),
        work=partial(services.cordon_slot, cordoned=False),
    )


@form_view(Role.OPERATOR)
def slot_drain(request: HttpRequest, pk: UUID) -> FormPage:
    slot = _get(pk)
    on_it = slot_occupancy(slot)
    consequence = gettext("The worker terminates soon.")
    if on_it.count:
        consequence = gettext("The worker terminates after that.")
    return _action_form(
        request,
        slot,
        gettext("Drain %(slot)s?"),
        gettext("Drain slot"),
        gettext("%(slot)s is draining."),
        text=f"{gettext('The slot gets no new sessions.')} {occupants_text(on_it)} {consequence}",
        work=services.drain_slot,
        danger=True,
    )


@form_view(Role.OPERATOR)
def slot_cancel_drain(request: HttpRequest, pk: UUID) -> FormPage:
    return _action_form(
        request,
        _get(pk),
        gettext("Cancel the drain of %(slot)s?"),
        gettext("Cancel drain"),
        gettext("%(slot)s is ready again."),
        text=gettext("The worker stays, and the slot can get sessions again. Its idle time restarts."),
        work=services.cancel_drain,
        dismiss=gettext("Keep draining"),
    )


class LabelsForm(ReasonForm):
    """The labels of a worker."""

    labels = LabelsField(
        label=_("Labels"), required=False, help_text=_("The labels last until this worker terminates.")
    )
    field_order = ("labels", "reason")


@form_view(Role.OPERATOR)
def slot_labels(request: HttpRequest, pk: UUID) -> FormPage:
    slot = _get(pk)
    return FormPage(
        title=gettext("Labels of %(slot)s") % {"slot": slot},
        text=gettext(
            "Sessions whose definition requires labels are placed only on slots that have them. "
            "Running sessions stay."
        ),
        form=LabelsForm,
        submit=gettext("Save labels"),
        save=service_call(request, services.label_slot, slot=slot),
        done=gettext("Labels of %(slot)s saved.") % {"slot": slot},
        initial={"labels": slot.labels},
        crumbs=[*slot_crumbs(slot), (gettext("Labels"), "")],
    )


@form_view(Role.OPERATOR)
def slot_retry(request: HttpRequest, pk: UUID) -> FormPage:
    return _action_form(
        request,
        _get(pk),
        gettext("Retry %(slot)s?"),
        gettext("Retry slot"),
        gettext("%(slot)s is available again."),
        text=gettext("The slot is available at once, and the pool's back-off ends."),
        work=services.retry_slot,
    )


@form_view(Role.OPERATOR)
def slot_terminate(request: HttpRequest, pk: UUID) -> FormPage:
    slot = _get(pk)
    on_it = slot_occupancy(slot)
    consequence = gettext("Drain the slot instead.") if on_it.count else gettext("The worker terminates now.")
    return _action_form(
        request,
        slot,
        gettext("Terminate %(slot)s?"),
        gettext("Terminate slot"),
        gettext("%(slot)s is terminating."),
        text=f"{occupants_text(on_it)} {consequence}",
        work=services.terminate_slot,
        danger=True,
    )


slot_bulk_cordon = bulk_view(CORDON, Role.OPERATOR)
slot_bulk_uncordon = bulk_view(UNCORDON, Role.OPERATOR)
slot_bulk_drain = bulk_view(DRAIN, Role.OPERATOR)
slot_bulk_retry = bulk_view(RETRY, Role.OPERATOR)


def _action_form(
    request: HttpRequest,
    slot: Slot,
    title: str,
    submit: str,
    done: str,
    *,
    text: str,
    work: Callable[..., Slot],
    danger: bool = False,
    dismiss: StrOrPromise = FormPage.dismiss,
) -> FormPage:
    """Dialog of an action: explains the effect and requires a reason.

    `%(slot)s` in the title and the result is the name of the slot.
    """
    return FormPage(
        title=title % {"slot": slot},
        text=text,
        submit=submit,
        danger=danger,
        dismiss=dismiss,
        save=service_call(request, work, slot=slot),
        done=done % {"slot": slot},
        crumbs=[*slot_crumbs(slot), (submit, "")],
    )


def _get(pk: UUID) -> Slot:
    return get_object_or_404(slots(), pk=pk)


def slot_crumbs(slot: Slot) -> list[tuple[str, str]]:
    return [
        (gettext("Capacity"), reverse("pool_list")),
        (slot.pool.name, reverse("pool_detail", args=[slot.pool_id])),
        (slot.name, reverse("slot_detail", args=[slot.pk])),
    ]


@dataclass(frozen=True)
class PortMap:
    shown: list[PortAllocation]
    allocated: int
    leaked: int
    free: int
    hidden: int


@dataclass(frozen=True)
class SlotReservation:
    """The share of a reservation on the slot, with its ports there as text."""

    reservation: Reservation
    share: Reservation | ReservationPart
    ports: str
    # The slots of a spread reservation.
    others: int = 0


def port_map(pool: Pool, ports: Sequence[PortAllocation]) -> PortMap:
    leaked = sum(port.leaked for port in ports)
    within = sum(pool.first_port <= port.port <= pool.last_port for port in ports)
    return PortMap(
        shown=list(ports[:MAX_PORTS]),
        allocated=len(ports) - leaked,
        leaked=leaked,
        free=pool.last_port - pool.first_port + 1 - within,
        hidden=max(len(ports) - MAX_PORTS, 0),
    )


def reservations_on_slot(slot: Slot, ports: Sequence[PortAllocation], *, limit: int) -> list[SlotReservation]:
    """Return the reservations with a lease on the slot, largest share first."""
    found = _by_session(ports)
    rows = list(reservations_on(slot)[:limit])
    parts = parts_of(rows)
    claims = []
    for row in rows:
        own_parts = parts.get(row.pk, [])
        share = next((part for part in own_parts if part.slot_id == slot.pk), row)
        claims.append(
            SlotReservation(row, share, ranges(found.get(row.session_id, [])), max(len(own_parts) - 1, 0))
        )
    return sorted(claims, key=lambda claim: (-claim.share.memory_gb, -claim.share.cpu_cores))


def _by_session(ports: Sequence[PortAllocation]) -> dict[object, list[int]]:
    found: dict[object, list[int]] = {}
    for port in ports:
        if port.session_id and not port.leaked:
            found.setdefault(port.session_id, []).append(port.port)
    return found
