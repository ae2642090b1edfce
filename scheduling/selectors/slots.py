"""Queries of slots: states that count as capacity, search, board, allocated amounts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Case, Count, F, Q, QuerySet, Value, When

from lcm.domain.access import ControllerScope
from lcm.domain.resources import Amounts
from scheduling.models import (
    IN_FLIGHT,
    OCCUPIED,
    LaunchAttempt,
    Pool,
    PortAllocation,
    Slot,
    SlotState,
)
from scheduling.placement.framework.amounts import NOTHING
from scheduling.selectors.allocated_resources import amounts_by_slot, ports_by_slot

_SLOT_NAME = re.compile(r"^(?P<pool>[a-z0-9-]+)-(?P<number>[0-9]{1,6})$")

# Slots that accept sessions, or will once they are READY.
SERVING = Q(cordoned=False, interruption_deadline=None)


def overdue_grace() -> timedelta:
    """Return how long an overdue slot is checked again before it is ended as a failure.

    Meanwhile no other launch takes its place.
    """
    return max(timedelta(minutes=1), 3 * timedelta(seconds=settings.CONFIG["RECONCILE_INTERVAL"]))


def is_in_flight(now: datetime) -> Q:
    """Filter slots that are expected to become READY; overdue slots are about to be ended."""
    return SERVING & Q(state__in=IN_FLIGHT, state_deadline__gt=now - overdue_grace())


def is_slot_in_flight(slot: Slot, now: datetime) -> bool:
    """Return the same for a loaded slot."""
    if slot.cordoned or slot.interruption_deadline or slot.state not in IN_FLIGHT or not slot.state_deadline:
        return False
    return slot.state_deadline > now - overdue_grace()


class ServingCounts(NamedTuple):
    """Numbers of serving slots of a pool: READY, READY without a lease, incoming."""

    ready: int
    idle: int
    in_flight: int


def serving_slots(pool: Pool, *, now: datetime) -> ServingCounts:
    ready = Q(state=SlotState.READY)
    counts = Slot.objects.filter(SERVING, pool=pool).aggregate(
        ready=Count("pk", filter=ready),
        idle=Count("pk", filter=ready & Q(lease_count=0)),
        in_flight=Count("pk", filter=is_in_flight(now)),
    )
    return ServingCounts(**counts)


def occupied_slots(pool: Pool) -> int:
    """Return the slots that count against the pool's maximum."""
    return Slot.objects.filter(pool=pool, state__in=OCCUPIED).count()


def emptying_slots(pool: Pool) -> int:
    """Return how many of them become free without action: no lease is left on them."""
    emptying = Q(state=SlotState.TERMINATING) | Q(state=SlotState.DRAINING, lease_count=0)
    return Slot.objects.filter(emptying, pool=pool).count()


def is_emptying(slot: Slot) -> bool:
    """Return the same for a loaded slot."""
    idle = slot.state == SlotState.DRAINING and not slot.lease_count
    return idle or slot.state == SlotState.TERMINATING


def slots() -> QuerySet[Slot]:
    return Slot.objects.select_related("pool")


def search_slots(rows: QuerySet[Slot], text: str, *, also: Q | None = None) -> QuerySet[Slot]:
    """Search slots by name, instance, address or offering."""
    found = also or Q()
    for column in ("pool__name", "instance_id", "endpoint", "offering"):
        found |= Q(**{f"{column}__icontains": text})
    if slot_name := _SLOT_NAME.match(text):
        found |= Q(pool__name=slot_name["pool"], number=int(slot_name["number"]))
    return rows.filter(found)


def slots_in_scope(scope: ControllerScope) -> QuerySet[Slot]:
    """Return the slots that a controller may see and report on."""
    rows = slots().filter(pool__name__in=scope.pools)
    return rows if scope.slot_id is None else rows.filter(pk=scope.slot_id)


def attempts_of(slot: Slot, limit: int) -> list[LaunchAttempt]:
    return list(slot.attempts.order_by("-requested_at", "-pk")[:limit])


def ports_of(slot: Slot) -> list[PortAllocation]:
    """Return the taken ports of a slot, in order, with their sessions."""
    return list(slot.ports.order_by("port").select_related("session"))


@dataclass(frozen=True)
class SlotAllocation:
    """Allocated amounts of a slot."""

    allocated: Amounts
    ports: int


def slot_allocations(pool: Pool, rows: list[Slot]) -> dict[UUID, SlotAllocation]:
    """Return the allocated amounts of slots of one pool, in one or two queries."""
    keys = [slot.pk for slot in rows]
    amounts, ports = amounts_by_slot(keys), ports_by_slot(pool, keys)
    return {
        key: SlotAllocation(Amounts.from_hundredths(amounts.get(key, NOTHING)), ports.get(key, 0))
        for key in keys
    }


def board_slots(pool: Pool, *, now: datetime, start: int, limit: int) -> list[Slot]:
    """Return a pool's slots that are not EMPTY: problems first, then transitions, then the fullest."""
    troubled = Q(state=SlotState.ERROR) | Q(interruption_deadline__isnull=False)
    overdue = Q(state_deadline__lt=now) & ~Q(state=SlotState.DRAINING, lease_count__gt=0)
    order = Case(
        When(troubled | overdue, then=Value(0)),
        When(state=SlotState.READY, then=Value(2)),
        default=Value(1),
    )
    rows: QuerySet[Any] = Slot.objects.filter(pool=pool).exclude(state=SlotState.EMPTY).annotate(group=order)
    found: list[Slot] = list(rows.order_by("group", F("lease_count").desc(), "number")[start : start + limit])
    for slot in found:
        slot.pool = pool
    return found


def empty_places(pool: Pool, *, start: int, limit: int) -> list[tuple[int, UUID | None]]:
    """Return slot numbers without an instance, with the previous slot if any; up to the pool's maximum."""
    rows = Slot.objects.filter(pool=pool).order_by().values_list("number", "state", "pk")
    by_number = {number: (state, pk) for number, state, pk in rows}
    occupied = sum(state != SlotState.EMPTY for state, _ in by_number.values())
    free = [
        (number, by_number[number][1] if number in by_number else None)
        for number in range(1, pool.max_slots + 1)
        if number not in by_number or by_number[number][0] == SlotState.EMPTY
    ]
    return free[: max(pool.max_slots - occupied, 0)][start : start + limit]
