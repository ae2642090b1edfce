"""How many sessions of a definition the real workers hold."""

from __future__ import annotations

from collections.abc import Mapping

from lcm.models import LabletDefinition
from observations.arithmetic.impact import GPU, Need, Packing, Room, pack
from observations.arithmetic.measures import MEASURED, hundredths
from scheduling.capacity import Resources, resources_of
from scheduling.models import Pool, Slot, SlotState
from scheduling.selectors.capacity import use_of

NAMES = (*MEASURED, GPU)


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
        slots = list(
            Slot.objects.filter(pool=pool, state=SlotState.READY, cordoned=False, interruption_deadline=None)
        )
        ports = pool.last_port - pool.first_port + 1
        use = use_of(pool, slots)
        for slot in slots:
            whole, taken = resources_of(slot), use[slot.pk]
            empty.append(Room(_amounts(whole), ports, slot.max_leases))
            free.append(
                Room(_amounts(whole - taken.taken), ports - taken.ports, slot.max_leases - slot.lease_count)
            )
    return empty, free


def _need(definition: LabletDefinition, amounts: Mapping[str, int]) -> Need:
    revision = definition.current_revision
    assert revision is not None
    return Need({**amounts, GPU: hundredths(revision.gpu)}, len(revision.port_template))


def _amounts(resources: Resources) -> dict[str, int]:
    return {name: max(hundredths(getattr(resources, name)), 0) for name in NAMES}
