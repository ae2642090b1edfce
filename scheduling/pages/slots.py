"""Slot pages: the list, the detail page and the actions of an Operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from lcm.selectors.organisation import changes_of
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import ObjectField, ReasonForm
from lcm.web.list_page import list_page
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
from scheduling.services import slots as services

LEASES_SHOWN = 50
ATTEMPTS_SHOWN = 10
MOST_PORTS = 600


@require_GET
@role_required(Role.VIEWER)
def slot_list(request: HttpRequest) -> HttpResponseBase:
    crumbs = [(gettext("Capacity"), reverse("pool_list")), (gettext("Slots"), "")]
    return list_page(request, SLOTS, crumbs=crumbs)


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
        "changes": changes_of(slot),
        "can": {
            "cordon": slot.state in LIVE and not slot.cordoned,
            "uncordon": slot.state in LIVE and slot.cordoned,
            "drain": slot.state in DRAINABLE,
            "label": slot.state in LIVE,
            "retry": slot.state == SlotState.ERROR and not slot.lease_count,
            "terminate": slot.state in LIVE and not slot.lease_count,
        },
        "crumbs": [*_crumbs(slot)[:2], (slot.name, "")],
    }
    return render(request, "capacity/slot.html", context)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def slot_cordon(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    slot = _get(pk)
    effect = gettext("The slot gets no new sessions and is not drained when idle.")
    return _ask(
        request,
        slot,
        gettext("Cordon %(slot)s?"),
        gettext("Cordon slot"),
        gettext("%(slot)s is cordoned."),
        text=f"{effect} {occupants_text(slot_occupancy(slot))}",
        work=_cordon,
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def slot_uncordon(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    return _ask(
        request,
        _get(pk),
        gettext("Uncordon %(slot)s?"),
        gettext("Uncordon slot"),
        gettext("%(slot)s is uncordoned."),
        text=gettext("The slot can get sessions again."),
        work=_uncordon,
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def slot_drain(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    slot = _get(pk)
    on_it = slot_occupancy(slot)
    then = gettext("The worker terminates soon.")
    if on_it.count:
        then = gettext("The worker terminates after that.")
    return _ask(
        request,
        slot,
        gettext("Drain %(slot)s?"),
        gettext("Drain slot"),
        gettext("%(slot)s is draining."),
        text=f"{gettext('The slot gets no new sessions.')} {occupants_text(on_it)} {then}",
        work=services.drain_slot,
        danger=True,
    )


class LabelsForm(ReasonForm):
    """The labels of a worker."""

    labels = ObjectField(
        label=_("Labels"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "input mono", "spellcheck": "false"}),
        help_text=_(
            'Names and values as JSON: {"gpu": "a10"}; empty for none. '
            "The labels last until this worker terminates."
        ),
        error_messages={
            "invalid": _('This is not valid JSON. Enter an object such as {"gpu": "a10"}, or leave it empty.')
        },
    )
    field_order = ("labels", "reason")

    def clean_labels(self) -> Any:
        return self.cleaned_data["labels"] or {}


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def slot_labels(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    slot = _get(pk)
    home = reverse("slot_detail", args=[pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        services.label_slot(slot=slot, **data, actor=actor_of(request), now=timezone.now())
        return FormResult(gettext("Labels of %(slot)s saved.") % {"slot": slot}, home)

    page = FormPage(
        title=gettext("Labels of %(slot)s") % {"slot": slot},
        text=gettext(
            "Sessions whose definition requires labels are placed only on slots that have them. "
            "Running sessions stay."
        ),
        form=LabelsForm,
        submit=gettext("Save labels"),
        save=save,
        back=home,
        initial={"labels": slot.labels},
        crumbs=[*_crumbs(slot), (gettext("Labels"), "")],
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def slot_retry(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    return _ask(
        request,
        _get(pk),
        gettext("Retry %(slot)s?"),
        gettext("Retry slot"),
        gettext("%(slot)s is available again."),
        text=gettext("The slot is available at once, and the pool's back-off ends."),
        work=services.retry_slot,
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def slot_terminate(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    slot = _get(pk)
    on_it = slot_occupancy(slot)
    then = gettext("Drain the slot instead.") if on_it.count else gettext("The worker terminates now.")
    return _ask(
        request,
        slot,
        gettext("Terminate %(slot)s?"),
        gettext("Terminate slot"),
        gettext("%(slot)s is terminating."),
        text=f"{occupants_text(on_it)} {then}",
        work=services.terminate_slot,
        danger=True,
    )


@require_POST
@role_required(Role.OPERATOR)
def slot_bulk_cordon(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, CORDON.name)


@require_POST
@role_required(Role.OPERATOR)
def slot_bulk_uncordon(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, UNCORDON.name)


@require_POST
@role_required(Role.OPERATOR)
def slot_bulk_drain(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, DRAIN.name)


@require_POST
@role_required(Role.OPERATOR)
def slot_bulk_retry(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, RETRY.name)


def _cordon(**given: Any) -> Slot:
    return services.cordon_slot(cordoned=True, **given)


def _uncordon(**given: Any) -> Slot:
    return services.cordon_slot(cordoned=False, **given)


def _ask(
    request: HttpRequest,
    slot: Slot,
    title: str,
    submit: str,
    done: str,
    *,
    text: str,
    work: Callable[..., Slot],
    danger: bool = False,
) -> HttpResponseBase:
    """Dialog of an action: explains the effect and requires a reason.

    `%(slot)s` in the title and the result is the name of the slot.
    """
    home = reverse("slot_detail", args=[slot.pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        work(slot=slot, reason=data["reason"], actor=actor_of(request), now=timezone.now())
        return FormResult(done % {"slot": slot}, home)

    page = FormPage(
        title=title % {"slot": slot},
        text=text,
        form=ReasonForm,
        submit=submit,
        danger=danger,
        save=save,
        back=home,
        crumbs=[*_crumbs(slot), (submit, "")],
    )
    return form_page(request, page)


def _get(pk: UUID) -> Slot:
    return get_object_or_404(slots(), pk=pk)


def _crumbs(slot: Slot) -> list[tuple[str, str]]:
    return [
        (gettext("Capacity"), reverse("pool_list")),
        (slot.pool.name, reverse("pool_detail", args=[slot.pool_id])),
        (slot.name, reverse("slot_detail", args=[slot.pk])),
    ]


@dataclass(frozen=True)
class PortMap:
    taken: list[PortAllocation]
    held: int
    leaked: int
    free: int
    hidden: int


@dataclass(frozen=True)
class SlotReservation:
    """The share of a reservation on the slot, with its ports there as text."""

    reservation: Reservation
    held: Reservation | ReservationPart
    ports: str
    # The slots of a spread reservation.
    others: int = 0


def port_map(pool: Pool, ports: Sequence[PortAllocation]) -> PortMap:
    leaked = sum(port.leaked for port in ports)
    within = sum(pool.first_port <= port.port <= pool.last_port for port in ports)
    return PortMap(
        taken=list(ports[:MOST_PORTS]),
        held=len(ports) - leaked,
        leaked=leaked,
        free=pool.last_port - pool.first_port + 1 - within,
        hidden=max(len(ports) - MOST_PORTS, 0),
    )


def reservations_on_slot(slot: Slot, ports: Sequence[PortAllocation], *, limit: int) -> list[SlotReservation]:
    """Return the reservations with a lease on the slot, largest share first."""
    found = _by_session(ports)
    rows = list(reservations_on(slot)[:limit])
    parts = parts_of(rows)
    claims = []
    for row in rows:
        mine = parts.get(row.pk, [])
        here = next((part for part in mine if part.slot_id == slot.pk), row)
        claims.append(
            SlotReservation(row, here, ranges(found.get(row.session_id, [])), max(len(mine) - 1, 0))
        )
    return sorted(claims, key=lambda claim: (-claim.held.memory_gb, -claim.held.cpu_cores))


def _by_session(ports: Sequence[PortAllocation]) -> dict[object, list[int]]:
    found: dict[object, list[int]] = {}
    for port in ports:
        if port.session_id and not port.leaked:
            found.setdefault(port.session_id, []).append(port.port)
    return found
