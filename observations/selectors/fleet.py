"""How many sessions of a definition the real workers hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet

from lcm.allocation import divide_among
from lcm.models import LabletDefinition, Placement
from observations.arithmetic.impact import GPU, Need, Packing, Room, added, pack
from observations.arithmetic.measures import amount, hundredths
from observations.arithmetic.spreading import pack_apart
from scheduling.capacity import NAMES
from scheduling.framework.amounts import NOTHING
from scheduling.framework.configuration import WrongConfiguration, read_configuration
from scheduling.models import Pool, Slot, SlotState
from scheduling.selectors.capacity import SERVING
from scheduling.selectors.rooms import amounts_by_slot, ports_by_slot, whole_units
from scheduling.selectors.snapshots import ports_by_kernel

# The workers of a pool, as if they were empty and as they are.
Rooms = tuple[list[Room], list[Room]]


def pools_of(definition: LabletDefinition) -> list[Pool]:
    """Where its sessions may wait: its pool, else all of its system that are enabled."""
    if definition.pool:
        return list(Pool.objects.filter(name=definition.pool))
    return list(Pool.objects.filter(system=definition.system, enabled=True))


def packing_of(
    definition: LabletDefinition, *, before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[Packing, Packing, Packing, Packing]:
    """On empty workers before and after, then on what is free of them now before and after."""
    pools = [rooms_for(definition, pool) for pool in pools_of(definition)]
    needs = [_need(definition, amounts) for amounts in (before, after)]
    return tuple(  # type: ignore[return-value]
        added([_packed(need, rooms[state]) for rooms in pools]) for state in (0, 1) for need in needs
    )


def _packed(need: Need, rooms: Sequence[Room]) -> Packing:
    """A session is within one pool, however far its kernels are apart."""
    return pack_apart(need, rooms) if need.kernels else pack(need, rooms)


def rooms_for(definition: LabletDefinition, pool: Pool) -> Rooms:
    """The READY workers on which the pool's scheduler would place its sessions."""
    ready = _ready(definition, pool)
    held, ports_held = amounts_by_slot(ready), ports_by_slot(pool, ready)
    ports = pool.last_port - pool.first_port + 1
    empty: list[Room] = []
    free: list[Room] = []
    for key, max_leases, leases, *whole in _labelled(ready, definition, pool):
        left = [max(a - b, 0) for a, b in zip(whole, held.get(key, NOTHING), strict=True)]
        empty.append(_room((*whole,), ports, max_leases))
        free.append(_room((*left,), ports - ports_held.get(key, 0), max_leases - leases))
    return empty, free


def _ready(definition: LabletDefinition, pool: Pool) -> QuerySet[Slot]:
    ready = Slot.objects.filter(SERVING, pool=pool, state=SlotState.READY).order_by()
    if definition.preemptible or not _is_asked(pool, "spot"):
        return ready
    return ready.filter(is_spot=False)


def _labelled(slots: QuerySet[Slot], definition: LabletDefinition, pool: Pool) -> list[tuple[Any, ...]]:
    """Of each its key, its leases at most and now, and the whole of everything."""
    columns: tuple[Any, ...] = ("pk", "max_leases", "lease_count", *whole_units().values())
    wanted = definition.slot_labels if _is_asked(pool, "labels") else {}
    if not wanted:
        return list(slots.values_list(*columns))
    rows = slots.values_list(*columns, "labels")
    return [row[:-1] for row in rows if all(row[-1].get(key) == value for key, value in wanted.items())]


def _is_asked(pool: Pool, plugin: str) -> bool:
    """Whether the pool's scheduler heeds a plugin; a configuration that cannot be read places nobody."""
    try:
        return read_configuration(pool.scheduler).has(plugin)
    except WrongConfiguration:
        return True


@lru_cache(maxsize=4096)
def _room(amounts: tuple[int, ...], ports: int, leases: int) -> Room:
    """Most workers are like another."""
    return Room(dict(zip(NAMES, amounts, strict=True)), ports, leases)


def _need(definition: LabletDefinition, amounts: Mapping[str, int]) -> Need:
    revision = definition.current_revision
    assert revision is not None
    whole = {**amounts, GPU: hundredths(revision.gpu)}
    kernels: Sequence[Need] = ()
    if definition.placement == Placement.SPREAD:
        kernels = _kernels(definition.nodes, whole, [port["name"] for port in revision.port_template])
    return Need(whole, len(revision.port_template), kernels)


def _kernels(nodes: Sequence[Mapping[str, Any]], whole: Mapping[str, int], ports: list[str]) -> list[Need]:
    """What each kernel of a session would be placed for."""
    labels = sorted(node["label"] for node in nodes)
    names = ports_by_kernel(labels, ports) if labels else {}
    parts = divide_among(nodes, {name: amount(units) for name, units in whole.items()})
    return [
        Need({name: hundredths(value) for name, value in part.items()}, len(names[node["label"]]))
        for node, part in zip(nodes, parts, strict=True)
    ]
