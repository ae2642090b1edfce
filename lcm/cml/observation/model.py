"""An observation of a running lab: value objects with the JSON form that is posted and stored.

Field names are the keys, `observed_at` is ISO 8601 with its offset, Decimals are text ("1.50"), tuples are
lists. **None means unknown, never 0.** The worker assigns the allocated values
(`total_…`, `cpu_cores`, `ram_mb`, `storage_mb`) to the nodes; `used_…` values are measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Annotated, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import core_schema

from lcm.cml.json_values import MAX_ITEMS, MAX_NUMBER, MAX_TEXT
from lcm.cml.node_sizes import has_no_vm
from lcm.cml.ports import MAX_PORT
from lcm.cml.records import Record
from lcm.domain.validation import (
    FLAG,
    Must,
    NullIsDefault,
    at_most,
    decimal,
    predicates,
    text,
    texts,
    whole_number,
)

# Observers: a controller on its own, or a controller on a user's request.
OBSERVERS = LABLET_CONTROLLER, MANUAL = "lablet-controller", "manual"
NOT_RUNNING = frozenset({None, "DEFINED_ON_CORE", "STOPPED"})
MAX_CORES = 100_000
MAX_MEGABYTES = 10**9
MAX_PORTS = 5_000
MAX_PORT_NAME = 200


Part = TypeVar("Part")


class ObservationMalformed(ValueError):
    """The JSON is not a valid observation. `problems` maps paths to messages."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        place, problem = next(iter(problems.items()))
        others = len(problems) - 1
        suffix = " 1 more value is wrong." if others == 1 else f" {others:,} more values are wrong."
        super().__init__(f"{place} {problem}{suffix if others else ''}")
        self.problems = dict(problems)


def observation_problems(error: ValidationError) -> dict[str, str]:
    """Return the problems of an invalid observation by path."""
    return predicates(error, "an observation")


def read_moment(value: object) -> datetime | None:
    """Return a time that is given with its UTC offset; None for any other value."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and moment.utcoffset() is not None else None


def _required_moment(value: object) -> datetime:
    moment = read_moment(value)
    if moment is None:
        raise ValueError("no time with an offset")
    return moment


_TEXT = text(f"text of up to {MAX_TEXT} characters", high=MAX_TEXT)

Text = Annotated[str, _TEXT]
Texts = Annotated[tuple[str, ...], texts("a list of texts", _TEXT, MAX_ITEMS)]
Whole = Annotated[int, whole_number()]
Cpus = Annotated[int, whole_number(high=MAX_CORES)]
Megabytes = Annotated[int, whole_number(high=MAX_MEGABYTES)]
Cores = Annotated[Decimal, decimal(MAX_CORES, f"a number from 0 to {MAX_CORES:,}")]
Percent = Annotated[Decimal, decimal(MAX_NUMBER, "a number from 0")]
Flag = Annotated[bool, FLAG]
Moment = Annotated[
    datetime,
    Must(
        "a time in ISO 8601 with a UTC offset",
        core_schema.no_info_plain_validator_function(_required_moment),
        {"type": "string", "format": "date-time"},
    ),
]
Observer = Annotated[
    str,
    Must(
        " or ".join(OBSERVERS),
        core_schema.literal_schema(list(OBSERVERS)),
        {"type": "string", "enum": list(OBSERVERS)},
    ),
]
PortName = Annotated[str, text(f"a name of 1 to {MAX_PORT_NAME} characters", low=1, high=MAX_PORT_NAME)]
Port = Annotated[int, whole_number(1, MAX_PORT, f"a port from 1 to {MAX_PORT}")]
ListOf = Annotated[tuple[Part, ...], at_most(MAX_ITEMS, list, f"a list of at most {MAX_ITEMS:,} entries")]
Ports = Annotated[dict[PortName, Port], at_most(MAX_PORTS, dict, f"an object of at most {MAX_PORTS:,} ports")]


@dataclass(frozen=True)
class MissingPart(Record):
    """A part that could not be read, such as `nodes`, `simulation_stats` or `nodes[R1].ram_mb`, and why."""

    part: Text
    """The part that could not be read."""
    message: Text
    """Why it could not be read."""


@dataclass(frozen=True)
class InterfaceObservation(Record):
    """An interface. `mac_address` is the one in use; addresses are None if CML did not return them."""

    interface_id: Text
    """Id of the interface in CML."""
    label: Text
    """Name of the interface."""
    slot: Whole | None = None
    """Number of the interface on its node."""
    state: Text | None = None
    """State in CML, for example STARTED."""
    is_connected: Flag | None = None
    """Whether a link ends here."""
    mac_address: Text | None = None
    """MAC address in use."""
    ip4: Texts | None = None
    """IPv4 addresses that CML has seen. Null: not read."""
    ip6: Texts | None = None
    """IPv6 addresses that CML has seen. Null: not read."""


@dataclass(frozen=True)
class NodeObservation(Record):
    """A node: allocated and used resources, ports by name, and interfaces.

    `cpu_cores` is cpus × cpu_limit / 100. `interfaces` is None if they could not be read.
    """

    node_id: Text
    """Id of the node in CML."""
    label: Text
    """Name of the node."""
    node_definition: Text
    """Node definition in CML, for example iosv."""
    image_definition: Text | None = None
    """Image definition in CML."""
    state: Text | None = None
    """State in CML, for example BOOTED."""
    compute_id: Text | None = None
    """Id of the compute host."""
    cpus: Cpus | None = None
    """Virtual CPUs."""
    cpu_limit: Whole | None = None
    """Percentage of its CPUs that the node may use, as in CML."""
    cpu_cores: Cores | None = None
    """Allocated cores: cpus × cpu_limit ÷ 100."""
    ram_mb: Megabytes | None = None
    """Allocated memory in MB."""
    storage_mb: Megabytes | None = None
    """Allocated storage in MB."""
    cpu_usage_percent: Percent | None = None
    """CPU usage in percent of its CPUs, as CML measures it."""
    memory_usage_percent: Percent | None = None
    """Memory usage in percent of its memory, as CML measures it."""
    used_cpu_cores: Cores | None = None
    """Used cores."""
    used_memory_mb: Megabytes | None = None
    """Used memory in MB."""
    used_storage_mb: Megabytes | None = None
    """Used storage in MB."""
    tags: Annotated[Texts, NullIsDefault()] = ()
    """Tags of the node, with the port tags."""
    ports: Annotated[Ports, NullIsDefault()] = field(default_factory=dict)
    """Ports of the node by name."""
    interfaces: ListOf[InterfaceObservation] | None = None
    """Interfaces of the node. Null: not read."""

    @property
    def is_running(self) -> bool:
        """Return whether the node is running. An unknown state counts as running."""
        return self.state not in NOT_RUNNING

    @property
    def has_no_vm(self) -> bool:
        """Return whether the node is a connector or a switch without a VM."""
        return has_no_vm(self.node_definition)


@dataclass(frozen=True)
class PoolUsage(Record):
    """Licences and storage of a CML resource pool across all its labs; None means no limit or unknown."""

    pool_id: Text
    """Id of the resource pool in CML."""
    label: Text
    """Name of the resource pool."""
    licenses_used: Whole | None = None
    """Licences in use, by all labs in the pool."""
    licenses_limit: Whole | None = None
    """Licences at most. Null: no limit, or unknown."""
    storage_used_mb: Whole | None = None
    """Storage in use in MB, by all labs in the pool."""
    storage_limit_mb: Whole | None = None
    """Storage at most in MB. Null: no limit, or unknown."""


@dataclass(frozen=True)
class ResourceObservation(Record):
    """A lab at one moment: totals, nodes, and the ports in their tags by name.

    If the nodes could not be read, `nodes` is empty and the totals, `actual_node_count`,
    `node_definitions_used` and `observed_ports` are None. `incomplete` names the fields that are None or too
    small because something could not be read, and `errors` says why.
    """

    observed_at: Moment
    """Time of the observation, with a UTC offset."""
    observer: Observer
    """“manual” if a person requested the observation."""
    controller: Text | None = None
    """Name of the controller."""
    lab_id: Text | None = None
    """Id of the lab in CML."""
    cml_version: Text | None = None
    """Version of CML."""
    total_cpu_cores: Cores | None = None
    """Cores allocated to all nodes."""
    total_memory_mb: Megabytes | None = None
    """Memory allocated to all nodes, in MB."""
    total_storage_mb: Megabytes | None = None
    """Storage allocated to all nodes, in MB."""
    used_cpu_cores: Cores | None = None
    """Cores used by all nodes."""
    used_memory_mb: Megabytes | None = None
    """Memory used by all nodes, in MB."""
    used_storage_mb: Megabytes | None = None
    """Storage used by all nodes, in MB."""
    nodes: Annotated[ListOf[NodeObservation], NullIsDefault()] = ()
    """Nodes of the lab, at most 1,000."""
    actual_node_count: Whole | None = None
    """Number of nodes, including unreadable nodes."""
    node_definitions_used: Texts | None = None
    """Names of the node definitions in the lab."""
    observed_ports: Ports | None = None
    """Ports of the lab by the names of the port template. Null: not read."""
    simulation_stats: dict[str, object] | None = None
    """Statistics as CML returns them. LCM stores them unchecked."""
    resource_pool_usage: ListOf[PoolUsage] | None = None
    """Resource pools of the CML host, over all their labs."""
    incomplete: Annotated[Texts, NullIsDefault()] = ()
    """Fields that are null or too small because a part could not be read."""
    errors: Annotated[ListOf[MissingPart], NullIsDefault()] = ()
    """Parts that could not be read."""

    @property
    def is_complete(self) -> bool:
        """Return whether everything could be read."""
        return not self.incomplete and not self.errors

    @classmethod
    def from_dict(cls, values: object) -> ResourceObservation:
        """Read the output of to_dict. Raises ObservationMalformed with all problems."""
        try:
            return observation_adapter().validate_python(values)
        except ValidationError as error:
            raise ObservationMalformed(observation_problems(error)) from error


@cache
def observation_adapter() -> TypeAdapter[ResourceObservation]:
    """Return the validator of observations, built at its first use: a controller reads none."""
    return TypeAdapter(ResourceObservation)
