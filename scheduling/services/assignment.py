"""Assignment of slots to reservations: one transaction, all or nothing for each session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import CharField, QuerySet
from django.db.models.functions import Cast

from lcm.db.bulk import insert_rows, update_rows
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import LabletSession
from lcm.services.session_transitions import transition_sessions_by_id
from scheduling.models import LastVerdict, Phase, Pool, Reservation, ReservationPart, Slot, SlotState
from scheduling.placement.framework.amounts import GPU, NOTHING, UNIT, Units
from scheduling.placement.framework.cycle import Verdict
from scheduling.placement.framework.model import JobPart
from scheduling.selectors.allocated_resources import (
    amounts_by_slot,
    devices_by_slot,
    ports_by_slot,
    whole_units,
)
from scheduling.selectors.snapshots import ports_by_kernel
from scheduling.services.port_allocation import allocate_ports, taken_ports


class LockedReservation(NamedTuple):
    """A locked reservation and its target slots."""

    id: UUID
    session_id: UUID | None
    port_names: list[str]
    spread: bool
    parts: tuple[JobPart, ...]


def assign_slots(pool: Pool, verdicts: Iterable[Verdict], *, now: datetime) -> list[Verdict]:
    """Assign slots to reservations; return the assigned ones.

    Reservations whose plan is outdated are left to the next tick. Rows are locked in the order session,
    reservation, slot, the same as in a cancellation.
    """
    planned = {UUID(verdict.job.id): verdict for verdict in verdicts}
    with transaction.atomic():
        waiting = Reservation.objects.filter(pk__among=list(planned), phase=Phase.PENDING)
        sessions = _lock_sessions([key for key in waiting.values_list("session_id", flat=True) if key])
        claims = [
            claim
            for claim in _lock_claims(waiting, planned)
            if claim.session_id is None or claim.session_id in sessions
        ]
        slots = _lock_slots(pool, {part.node for claim in claims for part in claim.parts})
        fitting = _still_fitting(pool, claims, slots)
        if not fitting:
            return []
        _write(pool, fitting, slots, now)
        _delete_verdicts([planned[claim.id] for claim in fitting])
        transition_sessions_by_id(
            session_ids=[claim.session_id for claim in fitting if claim.session_id],
            old=SessionStatus.PENDING,
            to=SessionStatus.SCHEDULED,
            actor=SYSTEM,
            now=now,
        )
    return [planned[claim.id] for claim in fitting]


def _lock_sessions(keys: Sequence[UUID]) -> set[UUID]:
    rows = LabletSession.objects.select_for_update().filter(pk__among=keys, status=SessionStatus.PENDING)
    return set(rows.order_by("pk").values_list("pk", flat=True))


def _lock_claims(waiting: QuerySet[Reservation], planned: Mapping[UUID, Verdict]) -> list[LockedReservation]:
    """Lock the reservations. Many have the same list of port names, so each list is parsed once."""
    rows = waiting.select_for_update().order_by("pk").annotate(names=Cast("port_names", CharField()))
    lists: dict[str, list[str]] = {}
    found = []
    for key, session_id, names, spread in rows.values_list("pk", "session_id", "names", "spread"):
        if names not in lists:
            lists[names] = json.loads(names)
        found.append(LockedReservation(key, session_id, lists[names], spread, planned[key].parts))
    return found


class LockedSlot(NamedTuple):
    """A slot in its current state, with amounts in units."""

    pk: UUID
    number: int
    lease_count: int
    max_leases: int
    capacity: Units


def _lock_slots(pool: Pool, keys: set[str]) -> dict[str, LockedSlot]:
    rows = Slot.objects.select_for_update().filter(
        pk__among=keys, pool=pool, state=SlotState.READY, cordoned=False, interruption_deadline=None
    )
    columns = rows.order_by("pk").annotate(**whole_units())
    return {
        key.hex: LockedSlot(key, number, leases, limit, tuple(capacity))
        for key, number, leases, limit, *capacity in columns.values_list(
            "pk", "number", "lease_count", "max_leases", *whole_units()
        )
    }


def _delete_verdicts(placed: Iterable[Verdict]) -> None:
    """Delete the wait reasons of placed reservations."""
    waited = [verdict.job.id for verdict in placed if verdict.job.verdict]
    if waited:
        LastVerdict.objects.filter(reservation_id__among=waited).delete()


def _still_fitting(
    pool: Pool, claims: Sequence[LockedReservation], slots: Mapping[str, LockedSlot]
) -> list[LockedReservation]:
    """Return the assignments that still fit, whatever another tick placed meanwhile."""
    free_spaces = _free_space_by_slot(pool, slots)
    fitting = []
    for claim in claims:
        spaces = [(free_spaces[part.node], part) for part in claim.parts if part.node in free_spaces]
        if len(spaces) == len(claim.parts) and all(space.fits(part) for space, part in spaces):
            for space, part in spaces:
                space.take(part)
            fitting.append(claim)
    return fitting


class _FreeSpace:
    """Free amounts of a locked slot."""

    def __init__(self, left: list[int], devices: dict[int, int]) -> None:
        self.left, self.devices = left, devices

    def fits(self, part: JobPart) -> bool:
        enough = all(free >= requested for free, requested in zip(self.left, _requested(part), strict=True))
        return enough and all(self.devices.get(device, 0) + held <= UNIT for device, held in part.devices)

    def take(self, part: JobPart) -> None:
        self.left = [free - requested for free, requested in zip(self.left, _requested(part), strict=True)]
        for device, held in part.devices:
            self.devices[device] = self.devices.get(device, 0) + held


def _requested(part: JobPart) -> tuple[int, ...]:
    return (*part.request, 1, part.ports)


def _free_space_by_slot(pool: Pool, slots: Mapping[str, LockedSlot]) -> dict[str, _FreeSpace]:
    rows = list(slots.values())
    busy = [slot.pk for slot in rows if slot.lease_count]
    allocated = amounts_by_slot(busy) if busy else {}
    devices = devices_by_slot(busy) if any(slot.capacity[GPU] for slot in rows) and busy else {}
    ports = ports_by_slot(pool, [slot.pk for slot in rows])
    found = {}
    for key, slot in slots.items():
        free = [
            whole - used for whole, used in zip(slot.capacity, allocated.get(slot.pk, NOTHING), strict=True)
        ]
        leases = slot.max_leases - slot.lease_count
        found[key] = _FreeSpace(
            [*free, leases, pool.port_count - ports.get(slot.pk, 0)], devices.get(slot.pk, {})
        )
    return found


def _write(
    pool: Pool, claims: Sequence[LockedReservation], slots: Mapping[str, LockedSlot], now: datetime
) -> None:
    update_rows(
        Reservation,
        ["slot"],
        [(claim.id, slots[claim.parts[0].node].pk) for claim in claims],
        same={
            "phase": Phase.READY,
            "assigned_at": now,
            "held_slot": None,
            "held_until": None,
        },
    )
    with_devices = [(claim.id, claim.parts[0].devices) for claim in claims if claim.parts[0].devices]
    if with_devices:
        update_rows(
            Reservation, ["devices"], [(key, [list(each) for each in held]) for key, held in with_devices]
        )
    leases: dict[str, int] = {}
    for claim in claims:
        for part in claim.parts:
            leases[part.node] = leases.get(part.node, 0) + 1
    update_rows(
        Slot,
        ["lease_count"],
        [(slots[key].pk, slots[key].lease_count + count) for key, count in leases.items()],
    )
    _write_parts(claims, slots)
    with_ports = [request for claim in claims for request in _ports_requested(claim, slots)]
    if with_ports:
        numbers = {slot.pk: slot.number for slot in slots.values()}
        taken = taken_ports({slot_id for _, slot_id, _ in with_ports})
        allocate_ports(pool, numbers, with_ports, taken, now=now)


def _write_parts(claims: Sequence[LockedReservation], slots: Mapping[str, LockedSlot]) -> None:
    """Write the part on each slot for reservations that may be on several."""
    rows = [
        (
            uuid4(),
            claim.id,
            slots[part.node].pk,
            [task.name for task in part.tasks],
            [list(each) for each in part.devices],
            *(amount / UNIT for amount in part.request),
        )
        for claim in claims
        if claim.spread
        for part in claim.parts
    ]
    if rows:
        columns = ["id", "reservation", "slot", "kernels", "devices", *RESOURCE_NAMES]
        insert_rows(ReservationPart, columns, rows)


def _ports_requested(
    claim: LockedReservation, slots: Mapping[str, LockedSlot]
) -> list[tuple[UUID, UUID, list[str]]]:
    """Return the port names of a session by slot."""
    if not claim.session_id or not claim.port_names:
        return []
    if not claim.spread:
        return [(claim.session_id, slots[claim.parts[0].node].pk, claim.port_names)]
    labels = sorted(task.name for part in claim.parts for task in part.tasks)
    names = ports_by_kernel(labels, claim.port_names)
    found = []
    for part in claim.parts:
        port_names = [name for task in part.tasks for name in names[task.name]]
        if port_names:
            found.append((claim.session_id, slots[part.node].pk, port_names))
    return found
