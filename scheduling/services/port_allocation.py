"""Port allocation: the first free ports of a worker, all or none for a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import QuerySet

from lcm.db.bulk import insert_rows
from lcm.domain.actors import SYSTEM
from lcm.models import LabletSession
from lcm.services.changelog import build_entry, log_changes
from scheduling.capacity.port_ranges import ranges
from scheduling.extensions import SchedulingExtension
from scheduling.models import Pool, PortAllocation, Slot

# The time until an abandoned lab is removed or shows its ports: a running import appears within a minute, and
# is removed as an orphan within five more.
LEAK_HOLD = timedelta(minutes=6)
SESSIONS_PER_ENTRY = 4
# So many ranges of ports of so many sessions are shorter than a message of the change log.
RANGES_PER_SESSION = 7

# Slot, session and port.
HeldPort = tuple[UUID, UUID, int]


def taken_ports(slot_ids: Iterable[UUID]) -> dict[UUID, set[int]]:
    """Return reserved and leaked ports, by slot."""
    taken: dict[UUID, set[int]] = {slot_id: set() for slot_id in slot_ids}
    rows = PortAllocation.objects.filter(slot_id__among=list(taken)).values_list("slot_id", "port")
    for slot_id, port in rows:
        taken[slot_id].add(port)
    return taken


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
    numbers: Mapping[UUID, int],
    requests: Sequence[tuple[UUID, UUID, Sequence[str]]],
    taken: Mapping[UUID, set[int]],
    *,
    now: datetime,
) -> None:
    """Reserve ports for sessions, given as (session, slot, names); `numbers`: number of each slot."""
    rows = [
        (uuid4(), slot_id, session_id, name, port)
        for session_id, slot_id, names in requests
        for name, port in zip(names, choose_ports(pool, taken[slot_id], len(names)), strict=True)
    ]
    insert_rows(
        PortAllocation,
        ["id", "slot", "session", "name", "port"],
        rows,
        same={"leaked": False, "created_at": now},
    )
    slots = {key: Slot(pk=key, pool=pool, number=numbers[key]) for key in {row[1] for row in rows}}
    _log_ports("allocated", slots, [(row[1], row[2], row[4]) for row in rows], now)


def mark_ports_leaked(session_ids: Iterable[UUID], *, now: datetime) -> None:
    """Mark ports as leaked: the labs may still use them until a later observation finds them free."""
    held = PortAllocation.objects.filter(session_id__in=list(session_ids))
    rows = _held_ports(held)
    if rows:
        held.update(session=None, leaked=True, held_until=now + LEAK_HOLD)
        _log_ports("leaked", _slots_of(rows), rows, now)


def release_ports(session_ids: Iterable[UUID], *, now: datetime) -> None:
    """Release the ports of removed labs. Leaked ports stay reserved until observed free."""
    held = PortAllocation.objects.filter(session_id__in=list(session_ids), leaked=False)
    rows = _held_ports(held)
    if rows:
        for effect in SchedulingExtension.installed().ports_released:
            effect(list({session_id for _, session_id, _ in rows}))
        held.delete()
        _log_ports("released", _slots_of(rows), rows, now)


def _held_ports(held: QuerySet[PortAllocation]) -> list[HeldPort]:
    rows = held.order_by("port").values_list("slot_id", "session_id", "port")
    return [(slot_id, session_id, port) for slot_id, session_id, port in rows if session_id]


def _slots_of(rows: Iterable[HeldPort]) -> Mapping[UUID, Slot]:
    return Slot.objects.select_related("pool").in_bulk({slot_id for slot_id, *_ in rows})


def _log_ports(change: str, slots: Mapping[UUID, Slot], rows: Iterable[HeldPort], now: datetime) -> None:
    """Log the ports of each slot, with a few sessions in each entry so that its message holds them."""
    found: dict[UUID, dict[UUID, list[int]]] = {}
    for slot_id, session_id, port in rows:
        found.setdefault(slot_id, {}).setdefault(session_id, []).append(port)
    # One object for the names of all sessions: creating each would take longer than the rest.
    session, entries = LabletSession(), []
    for slot_id, sessions in found.items():
        texts = []
        for session.pk, ports in sessions.items():
            texts.append(f"{ranges(ports, most=RANGES_PER_SESSION)} of {session}")
        for start in range(0, len(texts), SESSIONS_PER_ENTRY):
            message = f"Ports {change}: {'; '.join(texts[start : start + SESSIONS_PER_ENTRY])}"
            entry = build_entry(
                slots[slot_id], actor=SYSTEM, event=f"slot.ports_{change}", message=message, now=now
            )
            entries.append(entry)
    log_changes(entries)
