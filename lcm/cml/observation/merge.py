"""Merging the observations of a session that is spread over several workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from lcm.cml.observation.model import PoolUsage, ResourceObservation

T = TypeVar("T")

SUMS = (
    "total_cpu_cores",
    "total_memory_mb",
    "total_storage_mb",
    "used_cpu_cores",
    "used_memory_mb",
    "used_storage_mb",
    "actual_node_count",
)


# Fields of the parts that are combined in the merged observation.
JOINED = (*SUMS, "node_definitions_used", "observed_ports", "simulation_stats")


def merge_observations(observations: Sequence[ResourceObservation]) -> ResourceObservation:
    """Merge observations as if of one lab. Values missing from a part make the result incomplete."""
    first, *others = observations
    if not others:
        return first
    sums: dict[str, Any] = {name: _sum(getattr(each, name) for each in observations) for name in SUMS}
    return replace(
        first,
        lab_id=" ".join(each.lab_id for each in observations if each.lab_id) or None,
        nodes=tuple(node for each in observations for node in each.nodes),
        node_definitions_used=_names(each.node_definitions_used for each in observations),
        observed_ports=_together(each.observed_ports for each in observations),
        simulation_stats=_stats(each.simulation_stats for each in observations),
        resource_pool_usage=_pools(each.resource_pool_usage for each in observations),
        incomplete=_incomplete(observations),
        errors=tuple(error for each in observations for error in each.errors),
        **sums,
    )


def _incomplete(observations: Sequence[ResourceObservation]) -> tuple[str, ...]:
    """Return fields that a part could not read, and fields that only some parts have."""
    reported = [name for each in observations for name in each.incomplete]
    partly = [name for name in JOINED if len({getattr(each, name) is None for each in observations}) > 1]
    return tuple(dict.fromkeys([*reported, *partly]))


def _sum(values: Iterable[Any]) -> Any:
    """Return the sum of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _names(values: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    known = [value for value in values if value is not None]
    return tuple(sorted({name for value in known for name in value})) if known else None


def _pools(values: Iterable[tuple[PoolUsage, ...] | None]) -> tuple[PoolUsage, ...] | None:
    """Keep each pool once: two labs can be on one worker."""
    known = [value for value in values if value is not None]
    return tuple({pool.pool_id: pool for value in known for pool in value}.values()) if known else None


def _together(values: Iterable[dict[str, T] | None]) -> dict[str, T] | None:
    known = [value for value in values if value is not None]
    return {key: item for value in known for key, item in value.items()} if known else None


def _stats(values: Iterable[dict[str, object] | None]) -> dict[str, object] | None:
    """Merge by node id and link id, which are unique across workers."""
    known: list[dict[str, Any]] = [value for value in values if value is not None]
    if not known:
        return None
    return {kind: _together(value.get(kind) for value in known) for kind in ("nodes", "links")}
