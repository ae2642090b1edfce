"""Port allocation: the first free ports of a worker, all or none for a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from lcm.db.bulk import insert_rows
from scheduling.models import Pool, PortAllocation
from scheduling.signals import ports_going_free

# The time until an abandoned lab is removed or shows its ports: a running import appears within a minute, and
# is removed as an orphan within five more.
LEAK_HOLD = timedelta(minutes=6)


def taken_ports(slot_ids: Iterable[UUID]) -> dict[UUID, set[int]]:
    """Return reserved and leaked ports, by slot."""
    taken: dict[UUID, set[int]] = {slot_id: set() for slot_id in slot_ids}
    rows = PortAllocation.objects.filter(slot_id__among=list(taken)).values_list("slot_id", "port")
    for slot_id, port in rows:
        taken[slot_id].add(port)
    return taken


def free_ports(pool: Pool, taken: set[int]) -> int:
    within = sum(1 for port in taken if pool.first_port <= port <= pool.last_port)
    return pool.last_port - pool.first_port + 1 - within


def choose_ports(pool: Pool, taken: set[int], count: int) -> list[int]:
    """Return the first free ports of the pool's range and mark them as taken."""
    chosen: list[int] = []
    for port in range(pool.first_port, pool.last_port + 1):
        if len(chosen) == count:
            break
        if port not in taken:
            chosen.append(port)
    if len(chosen) < count:
        raise ValueError(f"{count} ports requested, {len(chosen)} free")
    taken.update(chosen)
    return chosen


def allocate_ports(
    pool: Pool,
    wanted: Sequence[tuple[UUID, UUID, Sequence[str]]],
    taken: Mapping[UUID, set[int]],
    *,
    now: datetime,
) -> None:
    """Reserve ports for sessions, given as (session, slot, names)."""
    insert_rows(
        PortAllocation,
        ["id", "slot", "session", "name", "port"],
        [
            (uuid4(), slot_id, session_id, name, port)
            for session_id, slot_id, names in wanted
            for name, port in zip(names, choose_ports(pool, taken[slot_id], len(names)), strict=True)
        ],
        same={"leaked": False, "created_at": now},
    )


def mark_ports_leaked(session_ids: Iterable[UUID], *, now: datetime) -> None:
    """Mark ports as leaked: the labs may still use them until a later observation finds them free."""
    PortAllocation.objects.filter(session_id__in=list(session_ids)).update(
        session=None, leaked=True, held_until=now + LEAK_HOLD
    )


def release_ports(session_ids: Iterable[UUID]) -> None:
    """Release the ports of removed labs. Leaked ports stay reserved until observed free."""
    held = PortAllocation.objects.filter(session_id__in=list(session_ids), leaked=False)
    gone = set(held.values_list("session_id", flat=True))
    if gone:
        ports_going_free.send(PortAllocation, session_ids=list(gone))
        held.delete()
