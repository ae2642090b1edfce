"""How many sessions of a definition the real workers hold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lcm.models import LabletDefinition
from observations.arithmetic.impact import GPU, Need, Packing, Room, pack
from observations.arithmetic.measures import hundredths
from scheduling.capacity import NAMES
from scheduling.framework.amounts import NOTHING
from scheduling.models import Pool, Slot, SlotState
from scheduling.selectors.capacity import SERVING
from scheduling.selectors.rooms import amounts_by_slot, ports_by_slot, whole_units


def pools_of(definition: LabletDefinition) -> list[Pool]:
    """Where its sessions may wait: its pool, else all of its system that are enabled."""
    if definition.pool:
        return list(Pool.objects.filter(name=definition.pool))
    return list(Pool.objects.filter(system=definition.system, enabled=True))


def packing_of(
    definition: LabletDefinition, *, before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[Packing, Packing, Packing, Packing]:
    """On empty workers before and after, then on what is free of them now before and after."""
    empty, free = rooms_for(definition)
    needs = [_need(definition, amounts) for amounts in (before, after)]
    return (*(pack(need, empty) for need in needs), *(pack(need, free) for need in needs))  # type: ignore[return-value]


def rooms_for(definition: LabletDefinition) -> tuple[list[Room], list[Room]]:
    """The READY workers as if they were empty, and as they are."""
    empty: list[Room] = []
    free: list[Room] = []
    for pool in pools_of(definition):
        ready = Slot.objects.filter(SERVING, pool=pool, state=SlotState.READY)
        slots = list(ready.order_by().values_list("pk", "max_leases", "lease_count", *whole_units().values()))
        keys = [key for key, *_ in slots]
        held, ports_held = amounts_by_slot(keys), ports_by_slot(pool, keys)
        ports = pool.last_port - pool.first_port + 1
        for key, max_leases, leases, *whole in slots:
            left = [max(a - b, 0) for a, b in zip(whole, held.get(key, NOTHING), strict=True)]
            empty.append(_room((*whole,), ports, max_leases))
            free.append(_room((*left,), ports - ports_held.get(key, 0), max_leases - leases))
    return empty, free


@lru_cache(maxsize=4096)
def _room(amounts: tuple[int, ...], ports: int, leases: int) -> Room:
    """Most workers are like another."""
    return Room(dict(zip(NAMES, amounts, strict=True)), ports, leases)


def _need(definition: LabletDefinition, amounts: Mapping[str, int]) -> Need:
    revision = definition.current_revision
    assert revision is not None
    return Need({**amounts, GPU: hundredths(revision.gpu)}, len(revision.port_template))
