"""Which reservation goes to which slot: the first that has room. Plain Python, no database.

The plugin scheduler takes this over; until then: capacity, lease limit and ports, by priority, then age.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from scheduling.capacity import Resources


@dataclass(frozen=True)
class Claim:
    """A reservation that waits."""

    id: UUID
    asked: Resources
    ports: int
    priority: int
    created_at: datetime


@dataclass
class Room:
    """A READY slot and what is left of it; placing takes from it."""

    id: UUID
    free: Resources
    leases: int
    ports: int

    def takes(self, claim: Claim) -> bool:
        return self.leases >= 1 and self.ports >= claim.ports and claim.asked.fits_in(self.free)

    def take(self, claim: Claim) -> None:
        self.free -= claim.asked
        self.leases -= 1
        self.ports -= claim.ports


@dataclass(frozen=True)
class Plan:
    """What goes where, and what found no place."""

    placed: dict[UUID, UUID] = field(default_factory=dict)
    unmet: list[Claim] = field(default_factory=list)


def in_order(claims: Sequence[Claim]) -> list[Claim]:
    """Higher priority first, then the older, then by id so that equals never swap."""
    return sorted(claims, key=lambda claim: (-claim.priority, claim.created_at, claim.id))


def place(claims: Sequence[Claim], rooms: Sequence[Room]) -> Plan:
    """First fit in the order of the rooms.

    Rooms only fill up, so claims of one shape share a pointer: what had no room before has none now.
    """
    plan = Plan()
    pointers: dict[tuple[Resources, int], int] = {}
    for claim in in_order(claims):
        shape = (claim.asked, claim.ports)
        index = pointers.get(shape, 0)
        while index < len(rooms) and not rooms[index].takes(claim):
            index += 1
        pointers[shape] = index
        if index == len(rooms):
            plan.unmet.append(claim)
            continue
        rooms[index].take(claim)
        plan.placed[claim.id] = rooms[index].id
    return plan


def slots_needed(claims: Sequence[Claim], empty: Room, limit: int) -> int:
    """How many slots like this one the claims would fill, up to a limit; what never fits counts nothing."""
    open_rooms: list[Room] = []
    pointers: dict[tuple[Resources, int], int] = {}
    for claim in in_order(claims) if limit > 0 else ():
        if not empty.takes(claim):
            continue
        shape = (claim.asked, claim.ports)
        index = pointers.get(shape, 0)
        while index < len(open_rooms) and not open_rooms[index].takes(claim):
            index += 1
        if index == len(open_rooms):
            if len(open_rooms) == limit:
                return limit
            open_rooms.append(Room(empty.id, empty.free, empty.leases, empty.ports))
        pointers[shape] = index
        open_rooms[index].take(claim)
    return len(open_rooms)
