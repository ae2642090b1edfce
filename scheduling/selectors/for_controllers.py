"""What capacity knows of sessions and slots that a controller works on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from scheduling.models import LIVE, Phase, PortAllocation, Reservation, ReservationPart, Slot


def slots_of_sessions(session_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Where each of the sessions is."""
    rows = Reservation.objects.filter(session_id__in=session_ids, phase=Phase.READY)
    return {
        row.session_id: _place(row.slot)
        for row in rows.select_related("slot__pool")
        if row.session_id and row.slot
    }


def nodes_by_slot(session_ids: Sequence[UUID]) -> dict[UUID, list[tuple[dict[str, Any], list[str]]]]:
    """Of sessions that are spread: which of their nodes are on which slot, always in the same order."""
    found: dict[UUID, list[tuple[dict[str, Any], list[str]]]] = {}
    rows = ReservationPart.objects.filter(
        reservation__session_id__in=session_ids, reservation__phase=Phase.READY
    )
    for row in rows.select_related("reservation", "slot__pool").order_by("slot__number"):
        if row.reservation.session_id:
            found.setdefault(row.reservation.session_id, []).append((_place(row.slot), row.kernels))
    return found


def _place(slot: Slot) -> dict[str, Any]:
    return {"id": slot.pk, "name": slot.name, "endpoint": slot.endpoint}


def ports_of_sessions(session_ids: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """The allocated ports of each of the sessions, by name."""
    found: dict[UUID, dict[str, int]] = {key: {} for key in session_ids}
    rows = PortAllocation.objects.filter(session_id__in=session_ids, leaked=False)
    for session_id, name, port in rows.values_list("session_id", "name", "port"):
        if session_id:
            found[session_id][name] = port
    return found


def live_slots(pools: Iterable[str]) -> QuerySet[Slot]:
    """Slots with a worker that can be spoken to, or soon can."""
    rows = Slot.objects.select_related("pool").filter(pool__name__in=list(pools), state__in=LIVE)
    return rows.exclude(endpoint="")
