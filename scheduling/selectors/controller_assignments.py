"""Slots, nodes and ports of the sessions that a controller handles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from lcm.domain.access import ControllerScope
from scheduling.models import LIVE, Phase, PortAllocation, Reservation, ReservationPart, Slot
from scheduling.selectors.slots import slots_in_scope


def slots_of_sessions(session_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Return the slots of each session."""
    rows = Reservation.objects.filter(session_id__in=session_ids, phase=Phase.READY)
    return {
        row.session_id: _slot_fields(row.slot)
        for row in rows.select_related("slot__pool")
        if row.session_id and row.slot
    }


def nodes_by_slot(session_ids: Sequence[UUID]) -> dict[UUID, list[tuple[dict[str, Any], list[str]]]]:
    """Return which nodes of spread sessions are on which slot, in a stable order."""
    found: dict[UUID, list[tuple[dict[str, Any], list[str]]]] = {}
    rows = ReservationPart.objects.filter(
        reservation__session_id__in=session_ids, reservation__phase=Phase.READY
    )
    for row in rows.select_related("reservation", "slot__pool").order_by("slot__number"):
        if row.reservation.session_id:
            found.setdefault(row.reservation.session_id, []).append((_slot_fields(row.slot), row.kernels))
    return found


def _slot_fields(slot: Slot) -> dict[str, Any]:
    return {"id": slot.pk, "name": slot.name, "endpoint": slot.endpoint}


def ports_of_sessions(session_ids: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """Return the allocated ports of each session, by name."""
    found: dict[UUID, dict[str, int]] = {key: {} for key in session_ids}
    rows = PortAllocation.objects.filter(session_id__in=session_ids, leaked=False)
    for session_id, name, port in rows.values_list("session_id", "name", "port"):
        if session_id:
            found[session_id][name] = port
    return found


def live_slots(scope: ControllerScope) -> QuerySet[Slot]:
    """Return slots whose worker can be reached, or soon can."""
    rows = slots_in_scope(scope).filter(state__in=LIVE)
    return rows.exclude(endpoint="")


def sessions_on_slot(slot_id: UUID) -> list[UUID]:
    """Return the sessions that are on this slot only; a spread session may be on several."""
    rows = Reservation.objects.filter(slot_id=slot_id, phase=Phase.READY, session__isnull=False)
    on_other_slots = ReservationPart.objects.filter(reservation=OuterRef("pk")).exclude(slot_id=slot_id)
    return list(rows.exclude(Exists(on_other_slots)).values_list("session_id", flat=True))


def sessions_ever_on_slot(slot_id: UUID, session_ids: Sequence[UUID]) -> list[UUID]:
    """Return the sessions among these that are or were on this slot."""
    rows = Reservation.objects.filter(session_id__in=session_ids, slot_id=slot_id)
    return list(rows.values_list("session_id", flat=True))
