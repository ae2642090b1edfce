"""Slots and reservations in the state after a tick."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import F

from lcm.domain.actors import SYSTEM
from lcm.models import LabletSession
from scheduling.models import Phase, Pool, PortAllocation, Reservation, Slot, SlotState
from scheduling.services.pools import create_pool
from scheduling.services.reservations import create_reservation

SIZE = {"cpu_cores": 16, "memory_gb": 64, "storage_gb": 500, "max_leases": 10}


def pool_named(name: str, **fields: Any) -> Pool:
    found = Pool.objects.filter(name=name).first()
    return found or create_pool(name=name, actor=SYSTEM, **fields)


def make_slot(pool: Pool, number: int = 1, state: str = SlotState.READY, **fields: Any) -> Slot:
    if state not in (SlotState.EMPTY, SlotState.LAUNCHING, SlotState.ERROR):
        fields.setdefault("instance_id", f"i-{pool.name}-{number}")
    return Slot.objects.create(pool=pool, number=number, state=state, **{**SIZE, **fields})


def reserve(pool: Pool, now: datetime, holder: str = "build-7", **fields: Any) -> Reservation:
    request = {"resources": {"cpu_cores": Decimal(2), "memory_gb": Decimal(4)}, **fields}
    return create_reservation(holder=holder, pool=pool.name, actor=SYSTEM, now=now, **request)


def put_on(slot: Slot, reservation: Reservation, now: datetime, *ports: int) -> None:
    """Lease a slot to a reservation and allocate these ports to its session."""
    Reservation.objects.filter(pk=reservation.pk).update(phase=Phase.READY, slot=slot, assigned_at=now)
    Slot.objects.filter(pk=slot.pk).update(lease_count=F("lease_count") + 1)
    for port in ports:
        PortAllocation.objects.create(
            slot=slot, port=port, name=f"r1_serial_{port}", session=reservation.session
        )


def put_session_on(slot: Slot, session: LabletSession, now: datetime, *ports: int) -> None:
    put_on(slot, session.reservations.get(), now, *ports)
