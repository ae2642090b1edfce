"""Whether what a controller posts can be an observation: types, sizes, ranges and times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from lcm.cml.observation import NodeObservation, ObservationMalformed, ResourceObservation
from lcm.errors import Unprocessable
from observations.arithmetic.measures import (
    ALLOCATED,
    CPU,
    MEMORY,
    STORAGE,
    USED,
    Amounts,
    gigabytes,
    hundredths,
)

MAX_NODES = 1_000
MAX_INTERFACES = 20_000
MAX_PORTS = 5_000
MAX_PORT_NAME = 200
MAX_CORES = Decimal(100_000)
MAX_MEGABYTES = 10**9
CLOCK_SKEW = timedelta(minutes=5)
OLDEST = timedelta(days=30)
_MEGABYTES = ("total_memory_mb", "total_storage_mb", "used_memory_mb", "used_storage_mb")
_CORES = ("total_cpu_cores", "used_cpu_cores")
_NODE_MEGABYTES = ("memory_mb", "storage_mb", "used_memory_mb", "used_storage_mb")
_NODE_CORES = ("cpus", "cpu_cores", "used_cpu_cores")
# Where the total of a resource and basis stands in an observation.
TOTALS = {
    (CPU, ALLOCATED): "total_cpu_cores",
    (CPU, USED): "used_cpu_cores",
    (MEMORY, ALLOCATED): "total_memory_mb",
    (MEMORY, USED): "used_memory_mb",
    (STORAGE, ALLOCATED): "total_storage_mb",
    (STORAGE, USED): "used_storage_mb",
}


def read_observation(body: Any, *, now: datetime) -> ResourceObservation:
    """The value object of a posted observation; refused with its place when it cannot be one."""
    _refuse_crowds(body)
    try:
        observation = ResourceObservation.from_dict(body)
    except ObservationMalformed as error:
        raise _refused(error.path or "observation", str(error)) from error
    _check_times(observation, now)
    _check_amounts(observation)
    _check_ports(observation)
    return observation


def amounts_of(observation: ResourceObservation) -> Amounts:
    """The totals that were read completely, in hundredths of a core or GB."""
    found: dict[tuple[str, str], int] = {}
    for key, name in TOTALS.items():
        value = getattr(observation, name)
        if value is not None and name not in observation.incomplete:
            found[key] = hundredths(value) if key[0] == CPU else gigabytes(value)
    return found


def _refuse_crowds(body: Any) -> None:
    """Before anything of it is built."""
    nodes = body.get("nodes") if isinstance(body, dict) else None
    if not isinstance(nodes, list):
        return
    if len(nodes) > MAX_NODES:
        raise _refused(
            "nodes", f"An observation has at most {MAX_NODES:,} nodes; this one has {len(nodes):,}."
        )
    lists = (node.get("interfaces") for node in nodes if isinstance(node, dict))
    interfaces = sum(len(each) for each in lists if isinstance(each, list))
    if interfaces > MAX_INTERFACES:
        raise _refused("nodes", f"An observation has at most {MAX_INTERFACES:,} interfaces.")


def _check_times(observation: ResourceObservation, now: datetime) -> None:
    age = now - observation.observed_at
    if age < -CLOCK_SKEW:
        raise _refused("observed_at", "This is in the future; the controller's clock is wrong.")
    if age > OLDEST:
        raise _refused("observed_at", f"This is more than {OLDEST.days} days ago.")


def _check_amounts(observation: ResourceObservation) -> None:
    _check_ranges(observation, _CORES, _MEGABYTES)
    for index, node in enumerate(observation.nodes):
        _check_ranges(node, _NODE_CORES, _NODE_MEGABYTES, f"nodes[{index}].")


def _check_ranges(
    seen: ResourceObservation | NodeObservation,
    cores: Sequence[str],
    megabytes: Sequence[str],
    place: str = "",
) -> None:
    for name in cores:
        if (getattr(seen, name) or 0) > MAX_CORES:
            raise _refused(f"{place}{name}", f"No lab has more than {MAX_CORES:,} cores.")
    for name in megabytes:
        if (getattr(seen, name) or 0) > MAX_MEGABYTES:
            raise _refused(f"{place}{name}", f"No lab has more than {MAX_MEGABYTES:,} MB.")


def _check_ports(observation: ResourceObservation) -> None:
    ports = observation.observed_ports or {}
    if len(ports) > MAX_PORTS:
        raise _refused("observed_ports", f"An observation has at most {MAX_PORTS:,} ports.")
    for name, port in ports.items():
        if not 1 <= port <= 65_535:
            raise _refused(f"observed_ports.{name[:60]}", "A port is from 1 to 65535.")
        if not 1 <= len(name) <= MAX_PORT_NAME:
            raise _refused("observed_ports", f"The name of a port has up to {MAX_PORT_NAME} characters.")


def _refused(place: str, message: str) -> Unprocessable:
    return Unprocessable(message, details={place: [message]})
