"""Number of a definition's sessions that the current workers can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from lcm.domain.allocation import allocate_to_nodes
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import LabletDefinition, Placement
from observations.arithmetic.impact import GPU, Packing, SessionDemand, WorkerSpace, combine_packings, pack
from observations.arithmetic.measures import amount, hundredths
from observations.arithmetic.spread_fit import pack_spread
from scheduling.models import Pool, Slot, SlotState
from scheduling.placement.framework.amounts import NOTHING
from scheduling.placement.framework.configuration import InvalidConfiguration, read_configuration
from scheduling.selectors.allocated_resources import amounts_by_slot, ports_by_slot, whole_units
from scheduling.selectors.slots import SERVING
from scheduling.selectors.snapshots import ports_by_kernel

# The workers of a pool, as if empty and as currently used.
PoolSpaces = tuple[list[WorkerSpace], list[WorkerSpace]]


def packing_of(
    definition: LabletDefinition,
    pools: Sequence[Pool],
    *,
    before: Mapping[str, int],
    after: Mapping[str, int],
) -> tuple[Packing, Packing, Packing, Packing]:
    """Return packings on empty workers before and after, then on current free capacity before and after."""
    found = worker_space_for(definition, pools)
    needs = [_need(definition, amounts) for amounts in (before, after)]
    packings = []
    for state in (0, 1):
        for need in needs:
            # Kernels may be spread over several workers of a pool.
            fit = pack_spread if need.kernels else pack
            packings.append(combine_packings([fit(need, spaces[state]) for spaces in found]))
    before_empty, after_empty, before_free, after_free = packings
    return before_empty, after_empty, before_free, after_free


def worker_space_for(definition: LabletDefinition, pools: Sequence[Pool]) -> list[PoolSpaces]:
    """Return per pool the READY workers on which its scheduler would place the definition's sessions."""
    ready = _ready(definition, pools)
    held, ports_held = amounts_by_slot(ready), ports_by_slot(None, ready)
    ports = {pool.pk: pool.last_port - pool.first_port + 1 for pool in pools}
    found: dict[UUID, PoolSpaces] = {pool.pk: ([], []) for pool in pools}
    for key, pool, max_leases, leases, *whole in _labelled(ready, definition, pools):
        left = [max(a - b, 0) for a, b in zip(whole, held.get(key, NOTHING), strict=True)]
        empty, free = found[pool]
        empty.append(_space((*whole,), ports[pool], max_leases))
        free.append(_space((*left,), ports[pool] - ports_held.get(key, 0), max_leases - leases))
    return list(found.values())


def _ready(definition: LabletDefinition, pools: Sequence[Pool]) -> QuerySet[Slot]:
    ready = Slot.objects.filter(SERVING, pool__in=pools, state=SlotState.READY).order_by()
    if definition.preemptible:
        return ready
    return ready.exclude(is_spot=True, pool__in=_pools_with_plugin(pools, "spot"))


def _labelled(
    slots: QuerySet[Slot], definition: LabletDefinition, pools: Sequence[Pool]
) -> list[tuple[Any, ...]]:
    """Return key, pool, maximum and current leases, and total capacity of each slot."""
    columns: tuple[Any, ...] = ("pk", "pool_id", "max_leases", "lease_count", *whole_units().values())
    wanted, checked = definition.slot_labels, _pools_with_plugin(pools, "labels")
    if not wanted or not checked:
        return list(slots.values_list(*columns))
    rows = slots.values_list(*columns, "labels")
    return [
        row[:-1]
        for row in rows
        if row[1] not in checked or all(row[-1].get(key) == value for key, value in wanted.items())
    ]


def _pools_with_plugin(pools: Sequence[Pool], plugin: str) -> set[UUID]:
    """Return pools whose scheduler uses a plugin; a pool with an invalid configuration places no session."""
    return {pool.pk for pool in pools if _has_plugin(pool, plugin)}


def _has_plugin(pool: Pool, plugin: str) -> bool:
    try:
        return read_configuration(pool.scheduler).has(plugin)
    except InvalidConfiguration:
        return True


@lru_cache(maxsize=4096)
def _space(amounts: tuple[int, ...], ports: int, leases: int) -> WorkerSpace:
    """Return cached worker space, because most workers have the same shape."""
    return WorkerSpace(dict(zip(RESOURCE_NAMES, amounts, strict=True)), ports, leases)


def _need(definition: LabletDefinition, amounts: Mapping[str, int]) -> SessionDemand:
    revision = definition.revision
    whole = {**amounts, GPU: hundredths(revision.gpu)}
    kernels: Sequence[SessionDemand] = ()
    if definition.placement == Placement.SPREAD:
        kernels = _kernels(definition.nodes, whole, [port["name"] for port in revision.port_template])
    return SessionDemand(whole, len(revision.port_template), kernels)


def _kernels(
    nodes: Sequence[Mapping[str, Any]], whole: Mapping[str, int], ports: list[str]
) -> list[SessionDemand]:
    """Return the demand of each kernel of a session."""
    labels = sorted(node["label"] for node in nodes)
    names = ports_by_kernel(labels, ports) if labels else {}
    parts = allocate_to_nodes(nodes, {name: amount(units) for name, units in whole.items()})
    return [
        SessionDemand({name: hundredths(value) for name, value in part.items()}, len(names[node["label"]]))
        for node, part in zip(nodes, parts, strict=True)
    ]
