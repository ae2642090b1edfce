"""The ports of a worker as its page shows them: what is taken, and how many are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.models import Pool, PortAllocation, Reservation

MOST_PORTS = 600


@dataclass(frozen=True)
class PortMap:
    taken: list[PortAllocation]
    held: int
    leaked: int
    free: int
    hidden: int


@dataclass(frozen=True)
class Claim:
    """A reservation on the slot, with its ports as text."""

    reservation: Reservation
    ports: str


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


def ports_by_session(claims: Sequence[Reservation], ports: Sequence[PortAllocation]) -> list[Claim]:
    found: dict[object, list[int]] = {}
    for port in ports:
        if port.session_id and not port.leaked:
            found.setdefault(port.session_id, []).append(port.port)
    return [Claim(claim, ranges(found.get(claim.session_id, []))) for claim in claims]


def ranges(numbers: Sequence[int]) -> str:
    """`2000–2003, 2010`"""
    texts: list[str] = []
    start = None
    for index, number in enumerate(numbers):
        start = number if start is None else start
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            texts.append(str(start) if start == number else f"{start}–{number}")
            start = None
    return ", ".join(texts)
