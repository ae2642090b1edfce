"""Putting a placement into the database: one transaction, everything or nothing for each session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from lcm.actors import SYSTEM
from lcm.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.services.sessions import move_sessions
from scheduling.bulk import update_each
from scheduling.capacity import resources_of
from scheduling.models import Phase, Pool, Reservation, Slot, SlotState
from scheduling.placement import Claim, Room
from scheduling.selectors.rooms import rooms_of
from scheduling.services.ports import allocate_ports, taken_ports


def assign(pool: Pool, placed: Mapping[UUID, UUID], *, now: datetime) -> int:
    """Give reservations their slots; what has changed since the plan was made is left for the next tick.

    Rows are locked in the order session, reservation, slot: the order in which a cancellation takes them.
    """
    with transaction.atomic():
        claims = Reservation.objects.filter(pk__in=list(placed), phase=Phase.PENDING)
        sessions = _lock_sessions([key for key in claims.values_list("session_id", flat=True) if key])
        locked = list(claims.select_for_update().order_by("pk"))
        held = [row for row in locked if row.session_id is None or row.session_id in sessions]
        slots = _lock_slots(pool, {placed[row.pk] for row in held})
        fitting = _still_fitting(pool, held, placed, slots)
        if not fitting:
            return 0
        _write(pool, fitting, placed, slots, now)
        moving = [sessions[row.session_id] for row in fitting if row.session_id]
        move_sessions(
            sessions=moving, old=SessionStatus.PENDING, to=SessionStatus.SCHEDULED, actor=SYSTEM, now=now
        )
    return len(fitting)


def _lock_sessions(keys: Sequence[UUID]) -> dict[UUID, LabletSession]:
    rows = LabletSession.objects.select_for_update().filter(pk__in=keys, status=SessionStatus.PENDING)
    return {row.pk: row for row in rows.order_by("pk")}


def _lock_slots(pool: Pool, keys: set[UUID]) -> dict[UUID, Slot]:
    rows = Slot.objects.select_for_update().filter(
        pk__in=keys, pool=pool, state=SlotState.READY, cordoned=False, interruption_deadline=None
    )
    return {row.pk: row for row in rows.order_by("pk")}


def _still_fitting(
    pool: Pool, rows: Sequence[Reservation], placed: Mapping[UUID, UUID], slots: Mapping[UUID, Slot]
) -> list[Reservation]:
    """Whatever another tick did meanwhile, no slot gets more than it has."""
    rooms: dict[UUID, Room] = {room.id: room for room in rooms_of(pool, list(slots.values()))}
    fitting = []
    for row in rows:
        room = rooms.get(placed[row.pk])
        claim = Claim(row.pk, resources_of(row), len(row.port_names), row.priority, row.created_at)
        if room is not None and room.takes(claim):
            room.take(claim)
            fitting.append(row)
    return fitting


def _write(
    pool: Pool,
    rows: Sequence[Reservation],
    placed: Mapping[UUID, UUID],
    slots: Mapping[UUID, Slot],
    now: datetime,
) -> None:
    update_each(
        Reservation,
        ["phase", "slot", "assigned_at"],
        [(row.pk, Phase.READY.value, placed[row.pk], now) for row in rows],
    )
    leases: dict[UUID, int] = {}
    for row in rows:
        leases[placed[row.pk]] = leases.get(placed[row.pk], 0) + 1
    update_each(
        Slot, ["lease_count"], [(key, slots[key].lease_count + count) for key, count in leases.items()]
    )
    with_ports = [
        (row.session_id, placed[row.pk], row.port_names) for row in rows if row.session_id and row.port_names
    ]
    if with_ports:
        allocate_ports(pool, with_ports, taken_ports({slot_id for _, slot_id, _ in with_ports}))
