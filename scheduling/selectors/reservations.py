"""Queries of reservations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce

from lcm.domain.lifecycle import FINAL
from lcm.models import LabletSession
from scheduling.models import (
    Phase,
    Reservation,
    ReservationPart,
    Slot,
)
from scheduling.selectors.lead_time import is_queued

# Columns of a session's definition that no list shows.
_LONG = ("topology_yaml", "nodes", "links")


def reservations() -> QuerySet[Reservation]:
    """Return reservations with their session, user and slot."""
    rows = Reservation.objects.select_related(
        "pool", "slot__pool", "session__definition", "session__owner", "last_verdict"
    )
    return rows.defer(*(f"session__definition__{name}" for name in _LONG))


def reservation_counts(now: datetime) -> tuple[int, int, int]:
    """Return how many are placed, waiting and booked; each phase has its own index."""
    due = is_queued(now)
    queue = Reservation.objects.filter(phase=Phase.PENDING).aggregate(
        waiting=Count("pool", filter=due), booked=Count("pool", filter=~due)
    )
    held = Reservation.objects.filter(phase=Phase.READY).count()
    return held, queue["waiting"], queue["booked"]


def reservations_on(slot: Slot) -> QuerySet[Reservation]:
    """Return the reservations with a lease on the slot, largest first."""
    # Query the ids first: with a subquery the database would scan all reservations.
    spread = list(ReservationPart.objects.filter(slot=slot).values_list("reservation_id", flat=True))
    is_current = Q(slot=slot) | Q(pk__in=spread)
    return reservations().filter(is_current, phase=Phase.READY).order_by("-memory_gb", "-cpu_cores", "pk")


@dataclass(frozen=True)
class SlotOccupancy:
    """Number of leases of a slot, how many have no session, and when the last one ends."""

    count: int
    without_session: int
    last_end: datetime | None


def slot_occupancy(slot: Slot) -> SlotOccupancy:
    found = reservations_on(slot).aggregate(
        count=Count("pk"),
        without_session=Count("pk", filter=Q(session=None)),
        last_end=Max(Coalesce("session__ends_at", "expires_at")),
    )
    return SlotOccupancy(**found)


def parts_of(rows: Sequence[Reservation]) -> dict[UUID, list[ReservationPart]]:
    """Return the parts of spread reservations by slot."""
    keys = [row.pk for row in rows if row.spread]
    found: dict[UUID, list[ReservationPart]] = {}
    if keys:
        parts = ReservationPart.objects.filter(reservation_id__in=keys).select_related("slot__pool")
        for part in parts.order_by("slot__number"):
            found.setdefault(part.reservation_id, []).append(part)
    return found


def reservations_of(session: LabletSession, limit: int) -> list[Reservation]:
    """Return a session's reservations, the one of the current attempt first."""
    return list(reservations().filter(session=session).order_by("-attempt", "-created_at")[:limit])


def last_reservations(session_ids: Sequence[UUID]) -> dict[UUID, Reservation]:
    """Return each session's reservation on its current slot, or on its last one."""
    is_current = Q(phase=Phase.READY) | Q(session__status__in=FINAL)
    rows = Reservation.objects.filter(is_current, session_id__in=session_ids, slot__isnull=False)
    placed = rows.select_related("slot__pool").order_by("attempt", "created_at")
    return {row.session_id: row for row in placed if row.session_id}
