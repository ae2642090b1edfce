"""Allocated amounts, GPUs and ports by slot, in one or two queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import BigIntegerField, Count, F, Q, QuerySet, Sum
from django.db.models.functions import Cast, Round

from lcm.domain.resources import RESOURCE_NAMES
from scheduling.models import Phase, Pool, PortAllocation, Reservation, ReservationPart, Slot
from scheduling.placement.framework.amounts import NOTHING, UNIT, Units, add

# Slots by id, or as a query if there may be thousands.
Slots: TypeAlias = "Sequence[UUID] | QuerySet[Slot]"


def amounts_by_slot(slots: Slots) -> dict[UUID, Units]:
    """Return the amounts that active reservations hold, by slot; spread reservations by their parts."""
    found: dict[UUID, Units] = {}
    whole, parts = (
        rows.order_by().values_list("slot_id").annotate(**whole_units(Sum)) for rows in _held_on(slots)
    )
    for slot_id, *amounts in whole.union(parts, all=True):
        found[slot_id] = add(found.get(slot_id, NOTHING), tuple(amounts))
    return found


def whole_units(of: Callable[[str], Any] = F) -> dict[str, Cast]:
    """Return the amounts of rows, or sums of them, in scheduler units, without creating Decimals."""
    return {f"{name}_units": Cast(Round(of(name) * UNIT), BigIntegerField()) for name in RESOURCE_NAMES}


def devices_by_slot(slots: Slots) -> dict[UUID, dict[int, int]]:
    """Return how much of each GPU is held, by slot."""
    found: dict[UUID, dict[int, int]] = {}
    for rows in _held_on(slots):
        for slot_id, devices in rows.filter(gpu__gt=0).values_list("slot_id", "devices"):
            held = found.setdefault(slot_id, {})
            for device, amount in devices:
                held[device] = held.get(device, 0) + amount
    return found


def ports_by_slot(pool: Pool | None, slots: Slots, *, leaked_only: bool = False) -> dict[UUID, int]:
    """Return the number of taken ports in the pool's range, by slot; slots may be of several pools."""
    first, last = (
        (pool.first_port, pool.last_port)
        if pool
        else (F("slot__pool__first_port"), F("slot__pool__last_port"))
    )
    rows = PortAllocation.objects.filter(_among(slots), port__gte=first, port__lte=last)
    if leaked_only:
        rows = rows.filter(leaked=True)
    counts: Any = rows.order_by().values_list("slot_id").annotate(Count("pk"))
    return dict(counts)


def _held_on(slots: Slots) -> tuple[Any, Any]:
    whole = Reservation.objects.filter(_among(slots), phase=Phase.READY, spread=False)
    return whole, ReservationPart.objects.filter(_among(slots))


def _among(slots: Slots) -> Q:
    return Q(slot__in=slots.values("pk")) if isinstance(slots, QuerySet) else Q(slot_id__among=slots)
