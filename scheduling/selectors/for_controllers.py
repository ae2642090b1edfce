"""What capacity knows of sessions and slots that a controller works on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from scheduling.models import LIVE, Phase, PortAllocation, Reservation, Slot


def slots_of_sessions(session_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Where each of the sessions is."""
    rows = Reservation.objects.filter(session_id__in=session_ids, phase=Phase.READY)
    return {
        row.session_id: {"id": row.slot.pk, "name": row.slot.name, "endpoint": row.slot.endpoint}
        for row in rows.select_related("slot__pool")
        if row.session_id and row.slot
    }


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
