"""An observation of a running lab: value objects with the JSON form that is posted and stored.

Field names are the keys, `observed_at` is ISO 8601 with its offset, Decimals are text ("1.50"), tuples are
lists. **None means unknown, never 0.** The worker assigns the allocated values
(`total_…`, `cpu_cores`, `ram_mb`, `storage_mb`) to the nodes; `used_…` values are measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from lcm.cml.node_sizes import has_no_vm
from lcm.cml.observation.json_schema import (
    CORES,
    CPUS,
    DECIMAL,
    FLAG,
    INTEGER,
    MEGABYTES,
    MOMENT,
    OBJECT,
    OBSERVER,
    OBSERVERS,
    TEXT,
    TEXTS,
    ObservationMalformed,
    PortsByName,
    RecordSchema,
)
from lcm.cml.records import Record

__all__ = [
    "LABLET_CONTROLLER",
    "MANUAL",
    "OBSERVATION",
    "InterfaceObservation",
    "MissingPart",
    "NodeObservation",
    "ObservationMalformed",
    "PoolUsage",
    "ResourceObservation",
]

# Observers: a controller on its own, or a controller on a user's request.
LABLET_CONTROLLER, MANUAL = OBSERVERS
NOT_RUNNING = frozenset({None, "DEFINED_ON_CORE", "STOPPED"})


@dataclass(frozen=True)
class MissingPart(Record):
    """A part that could not be read, such as `nodes`, `simulation_stats` or `nodes[R1].ram_mb`, and why."""

    part: str
    message: str


@dataclass(frozen=True)
class InterfaceObservation(Record):
    """An interface. `mac_address` is the one in use; addresses are None if CML did not return them."""

    interface_id: str
    label: str
    slot: int | None = None
    state: str | None = None
    is_connected: bool | None = None
    mac_address: str | None = None
    ip4: tuple[str, ...] | None = None
    ip6: tuple[str, ...] | None = None


@dataclass(frozen=True)
class NodeObservation(Record):
    """A node: allocated and used resources, ports by name, and interfaces.

    `cpu_cores` is cpus × cpu_limit / 100. `interfaces` is None if they could not be read.
    """

    node_id: str
    label: str
    node_definition: str
    image_definition: str | None = None
    state: str | None = None
    compute_id: str | None = None
    cpus: int | None = None
    cpu_limit: int | None = None
    cpu_cores: Decimal | None = None
    ram_mb: int | None = None
    storage_mb: int | None = None
    cpu_usage_percent: Decimal | None = None
    memory_usage_percent: Decimal | None = None
    used_cpu_cores: Decimal | None = None
    used_memory_mb: int | None = None
    used_storage_mb: int | None = None
    tags: tuple[str, ...] = ()
    ports: dict[str, int] = field(default_factory=dict)
    interfaces: tuple[InterfaceObservation, ...] | None = None

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

    pool_id: str
    label: str
    licenses_used: int | None = None
    licenses_limit: int | None = None
    storage_used_mb: int | None = None
    storage_limit_mb: int | None = None


@dataclass(frozen=True)
class ResourceObservation(Record):
    """A lab at one moment: totals, nodes, and the ports in their tags by name.

    If the nodes could not be read, `nodes` is empty and the totals, `actual_node_count`,
    `node_definitions_used` and `observed_ports` are None. `incomplete` names the fields that are None or too
    small because something could not be read, and `errors` says why.
    """

    observed_at: datetime
    observer: str
    controller: str | None = None
    lab_id: str | None = None
    cml_version: str | None = None
    total_cpu_cores: Decimal | None = None
    total_memory_mb: int | None = None
    total_storage_mb: int | None = None
    used_cpu_cores: Decimal | None = None
    used_memory_mb: int | None = None
    used_storage_mb: int | None = None
    nodes: tuple[NodeObservation, ...] = ()
    actual_node_count: int | None = None
    node_definitions_used: tuple[str, ...] | None = None
    observed_ports: dict[str, int] | None = None
    simulation_stats: dict[str, object] | None = None
    resource_pool_usage: tuple[PoolUsage, ...] | None = None
    incomplete: tuple[str, ...] = ()
    errors: tuple[MissingPart, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether everything could be read."""
        return not self.incomplete and not self.errors

    @classmethod
    def from_dict(cls, values: object) -> ResourceObservation:
        """Read the output of to_dict. Raises ObservationMalformed with all problems."""
        problems: dict[str, str] = {}
        observation = OBSERVATION.read(values, "", problems)
        if problems:
            raise ObservationMalformed(problems)
        return observation


MISSING_PART = RecordSchema(MissingPart, {"part": TEXT, "message": TEXT}, required=("part", "message"))
INTERFACE = RecordSchema(
    InterfaceObservation,
    {
        "interface_id": TEXT,
        "label": TEXT,
        "slot": INTEGER,
        "state": TEXT,
        "is_connected": FLAG,
        "mac_address": TEXT,
        "ip4": TEXTS,
        "ip6": TEXTS,
    },
    required=("interface_id", "label"),
)
NODE = RecordSchema(
    NodeObservation,
    {
        "node_id": TEXT,
        "label": TEXT,
        "node_definition": TEXT,
        "image_definition": TEXT,
        "state": TEXT,
        "compute_id": TEXT,
        "cpus": CPUS,
        "cpu_limit": INTEGER,
        "cpu_cores": CORES,
        "ram_mb": MEGABYTES,
        "storage_mb": MEGABYTES,
        "cpu_usage_percent": DECIMAL,
        "memory_usage_percent": DECIMAL,
        "used_cpu_cores": CORES,
        "used_memory_mb": MEGABYTES,
        "used_storage_mb": MEGABYTES,
        "tags": TEXTS,
    },
    required=("node_id", "label", "node_definition"),
    parts={"ports": PortsByName(), "interfaces": INTERFACE},
)
POOL_USAGE = RecordSchema(
    PoolUsage,
    {
        "pool_id": TEXT,
        "label": TEXT,
        "licenses_used": INTEGER,
        "licenses_limit": INTEGER,
        "storage_used_mb": INTEGER,
        "storage_limit_mb": INTEGER,
    },
    required=("pool_id", "label"),
)
OBSERVATION = RecordSchema(
    ResourceObservation,
    {
        "observed_at": MOMENT,
        "observer": OBSERVER,
        "controller": TEXT,
        "lab_id": TEXT,
        "cml_version": TEXT,
        "total_cpu_cores": CORES,
        "total_memory_mb": MEGABYTES,
        "total_storage_mb": MEGABYTES,
        "used_cpu_cores": CORES,
        "used_memory_mb": MEGABYTES,
        "used_storage_mb": MEGABYTES,
        "actual_node_count": INTEGER,
        "node_definitions_used": TEXTS,
        "simulation_stats": OBJECT,
        "incomplete": TEXTS,
    },
    required=("observed_at", "observer"),
    parts={
        "nodes": NODE,
        "observed_ports": PortsByName(),
        "resource_pool_usage": POOL_USAGE,
        "errors": MISSING_PART,
    },
)
