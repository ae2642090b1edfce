"""What is left on slots, as the placement sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum

from lcm.lifecycle import SessionStatus
from scheduling.capacity import Resources, resources_of
from scheduling.models import Phase, Pool, PortAllocation, Reservation, Slot, SlotState
from scheduling.placement import Claim, Room

# A session's claim waits only while the session does.
_WAITING = Q(session=None) | Q(session__status=SessionStatus.PENDING)
NAMES = ("cpu_cores", "memory_gb", "storage_gb", "gpu")


def serving_slots(pool: Pool) -> list[Slot]:
    """READY slots that may get sessions, by number."""
    serving = Slot.objects.filter(
        pool=pool, state=SlotState.READY, cordoned=False, interruption_deadline=None
    )
    return list(serving.order_by("number").only("id", "max_leases", "lease_count", *NAMES))


def rooms_of(pool: Pool, slots: Sequence[Slot]) -> list[Room]:
    """What each slot has left, from its active reservations and taken ports; two queries for all."""
    keys = [slot.pk for slot in slots]
    used: dict[UUID, Resources] = {}
    sums: Any = {name: Sum(name) for name in NAMES}
    busy = [slot.pk for slot in slots if slot.lease_count]
    if busy:
        held = Reservation.objects.filter(slot_id__in=busy, phase=Phase.READY).order_by()
        rows: Any = held.values("slot_id").annotate(**sums)
        for row in rows:
            used[row["slot_id"]] = Resources(*(row[name] for name in NAMES))
    ports = _ports_taken(pool, keys)
    whole = pool.last_port - pool.first_port + 1
    return [
        Room(
            id=slot.pk,
            free=resources_of(slot) - used.get(slot.pk, Resources()),
            leases=slot.max_leases - slot.lease_count,
            ports=whole - ports.get(slot.pk, 0),
        )
        for slot in slots
    ]


def empty_room(pool: Pool) -> Room:
    """A slot of this pool that nobody is on."""
    return Room(pool.pk, resources_of(pool), pool.max_leases, pool.last_port - pool.first_port + 1)


def waiting_claims(pool: Pool, limit: int) -> list[Claim]:
    """The head of the pool's queue."""
    rows = (
        Reservation.objects.filter(_WAITING, pool=pool, phase=Phase.PENDING)
        .order_by("-priority", "created_at", "pk")
        .values_list("pk", *NAMES, "port_names", "priority", "created_at")[:limit]
    )
    return [
        Claim(pk, Resources(cpu, memory, storage, gpu), len(names), priority, created_at)
        for pk, cpu, memory, storage, gpu, names, priority, created_at in rows
    ]


def _ports_taken(pool: Pool, keys: Sequence[UUID]) -> dict[UUID, int]:
    within = Q(port__gte=pool.first_port, port__lte=pool.last_port)
    rows: Any = (
        PortAllocation.objects.filter(within, slot_id__in=keys)
        .order_by()
        .values_list("slot_id")
        .annotate(Count("pk"))
    )
    return dict(rows)
