"""Invariants of a pool."""

from __future__ import annotations

from collections import Counter

from django.db.models import Count, Sum

from lcm.domain.lifecycle import FINAL
from lcm.domain.resources import RESOURCE_NAMES
from scheduling.models import (
    ACTIVE_PHASES,
    IN_FLIGHT,
    OCCUPIED,
    AttemptOutcome,
    LaunchAttempt,
    Phase,
    Pool,
    PortAllocation,
    Reservation,
    Slot,
    SlotState,
)


def check_rows(pool: Pool) -> None:
    """Check the invariants that the database alone shows."""
    slots = list(Slot.objects.filter(pool=pool))
    check_leases(slots)
    check_limits(pool, slots)
    check_markets(slots)
    check_ports(pool)
    check_sessions(pool)
    check_attempts(slots)


def check_leases(slots: list[Slot]) -> None:
    """lease_count equals the number of READY reservations on the slot and never exceeds its limit."""
    held = Counter(
        Reservation.objects.filter(slot__in=slots, phase=Phase.READY).values_list("slot_id", flat=True)
    )
    for slot in slots:
        assert slot.lease_count == held[slot.pk], f"{slot}: {slot.lease_count} counted, {held[slot.pk]} held"
        assert slot.lease_count <= slot.max_leases
        if slot.state in (SlotState.EMPTY, SlotState.ERROR, *IN_FLIGHT):
            assert slot.lease_count == 0, f"{slot} is {slot.state} and has leases"


def check_limits(pool: Pool, slots: list[Slot]) -> None:
    """Never more slots than the maximum, and never more on a slot than its capacity."""
    assert len([slot for slot in slots if slot.state in OCCUPIED]) <= pool.max_slots
    sums = {f"sum_{name}": Sum(name) for name in RESOURCE_NAMES}
    used = Reservation.objects.filter(slot__in=slots, phase=Phase.READY).values("slot_id").annotate(**sums)
    capacity = {slot.pk: slot.amounts.as_dict() for slot in slots}
    for row in used.order_by():
        for name in RESOURCE_NAMES:
            assert row[f"sum_{name}"] <= capacity[row["slot_id"]][name], f"too much {name} on a slot"


def check_markets(slots: list[Slot]) -> None:
    """No non-preemptible work on a spot slot, and no spot slot from a launch for such work."""
    held = Reservation.objects.filter(slot__in=slots, phase=Phase.READY)
    assert not held.filter(preemptible=False, slot__is_spot=True).exists()
    filled = {slot.instance_id for slot in slots if slot.is_spot}
    assert not LaunchAttempt.objects.filter(on_demand_only=True, instance_id__in=filled - {""}).exists()


def check_ports(pool: Pool) -> None:
    """No duplicate port on a slot; ports only of sessions that hold the slot; none without an instance."""
    assert not PortAllocation.objects.filter(slot__pool=pool, slot__state=SlotState.EMPTY).exists()
    ports = list(PortAllocation.objects.filter(slot__pool=pool).values_list("slot_id", "port", "session_id"))
    assert len({(slot, port) for slot, port, _ in ports}) == len(ports)
    holding = set(
        Reservation.objects.filter(pool=pool, phase=Phase.READY, session__isnull=False).values_list(
            "slot_id", "session_id"
        )
    )
    assert {(slot, session) for slot, _, session in ports if session} <= holding


def check_sessions(pool: Pool) -> None:
    """One active reservation per active session, none for an ended session."""
    active = Reservation.objects.filter(pool=pool, phase__in=ACTIVE_PHASES, session__isnull=False)
    twice = active.order_by().values("session_id").annotate(count=Count("pk")).filter(count__gt=1)
    assert not twice.exists()
    assert not active.filter(session__status__in=FINAL).exists()
    assert not active.filter(session__status="PENDING", phase=Phase.READY).exists()


def check_attempts(slots: list[Slot]) -> None:
    """An open attempt belongs to a LAUNCHING slot, and each LAUNCHING slot has one."""
    awaited = set(
        LaunchAttempt.objects.filter(slot__in=slots, outcome=AttemptOutcome.OPEN).values_list(
            "slot_id", flat=True
        )
    )
    assert awaited == {slot.pk for slot in slots if slot.state == SlotState.LAUNCHING}
    owned = [slot.instance_id for slot in slots if slot.instance_id]
    assert len(set(owned)) == len(owned)
