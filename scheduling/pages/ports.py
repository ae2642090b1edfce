"""Ports and reservations of a worker as its page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.capacity.port_ranges import ranges
from scheduling.models import Pool, PortAllocation, Reservation, ReservationPart, Slot
from scheduling.selectors.capacity import parts_of, reservations_on

MOST_PORTS = 600


@dataclass(frozen=True)
class PortMap:
    taken: list[PortAllocation]
    held: int
    leaked: int
    free: int
    hidden: int


@dataclass(frozen=True)
class SlotReservation:
    """The share of a reservation on the slot, with its ports there as text."""

    reservation: Reservation
    held: Reservation | ReservationPart
    ports: str
    # The slots of a spread reservation.
    others: int = 0


def port_map(pool: Pool, ports: Sequence[PortAllocation]) -> PortMap:
    leaked = sum(port.leaked for port in ports)
    within = sum(pool.first_port <= port.port <= pool.last_port for port in ports)
    return PortMap(
        taken=list(ports[:MOST_PORTS]),
        held=len(ports) - leaked,
        leaked=leaked,
        free=pool.last_port - pool.first_port + 1 - within,
        hidden=max(len(ports) - MOST_PORTS, 0),
    )


def reservations_on_slot(slot: Slot, ports: Sequence[PortAllocation], *, limit: int) -> list[SlotReservation]:
    """Return the reservations with a lease on the slot, largest share first."""
    found = _by_session(ports)
    rows = list(reservations_on(slot)[:limit])
    parts = parts_of(rows)
    claims = []
    for row in rows:
        mine = parts.get(row.pk, [])
        here = next((part for part in mine if part.slot_id == slot.pk), row)
        claims.append(
            SlotReservation(row, here, ranges(found.get(row.session_id, [])), max(len(mine) - 1, 0))
        )
    return sorted(claims, key=lambda claim: (-claim.held.memory_gb, -claim.held.cpu_cores))


def _by_session(ports: Sequence[PortAllocation]) -> dict[object, list[int]]:
    found: dict[object, list[int]] = {}
    for port in ports:
        if port.session_id and not port.leaked:
            found.setdefault(port.session_id, []).append(port.port)
    return found
