"""Merging the observations of a session that is spread over several workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


def merge_observations(observations: Sequence[ResourceObservation]) -> ResourceObservation:
    """Merge observations as if of one lab. Values missing from a part make the result incomplete."""
    first, *others = observations
    if not others:
        return first
    return replace(
        first,
        lab_id=" ".join(part.lab_id for part in observations if part.lab_id) or None,
        nodes=tuple(node for part in observations for node in part.nodes),
        resource_pool_usage=_combined(observations, "resource_pool_usage", _pools),
        incomplete=_incomplete(observations),
        errors=tuple(error for part in observations for error in part.errors),
        **{name: _combined(observations, name, combine) for name, combine in MERGED_FIELDS.items()},
    )


def _combined(
    observations: Sequence[ResourceObservation], name: str, combine: Callable[[list[Any]], Any]
) -> Any:
    """Return the combination of the known values of a field; None if there are none."""
    known = [value for part in observations if (value := getattr(part, name)) is not None]
    return combine(known) if known else None


def _incomplete(observations: Sequence[ResourceObservation]) -> tuple[str, ...]:
    """Return fields that a part could not read, and fields that only some parts have."""
    reported = [name for part in observations for name in part.incomplete]
    partly = [
        name for name in MERGED_FIELDS if len({getattr(part, name) is None for part in observations}) > 1
    ]
    return tuple(dict.fromkeys([*reported, *partly]))


def _names(known: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({name for value in known for name in value}))


def _pools(known: Sequence[tuple[PoolUsage, ...]]) -> tuple[PoolUsage, ...]:
    """Keep each pool once: two labs can be on one worker."""
    return tuple({pool.pool_id: pool for value in known for pool in value}.values())


def _merged(known: Iterable[Mapping[str, T]]) -> dict[str, T]:
    return {key: item for value in known for key, item in value.items()}


def _stats(known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge by node id and link id, which are unique across workers."""
    return {kind: _merged(value.get(kind) or {} for value in known) for kind in ("nodes", "links")}


# Fields that are incomplete if only some parts have them, and how to combine their values.
MERGED_FIELDS: dict[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(SUMS, sum),
    "node_definitions_used": _names,
    "observed_ports": _merged,
    "simulation_stats": _stats,
}
