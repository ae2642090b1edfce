"""What was seen of a running lab: value objects with the JSON form that is posted and stored.

The field names are the keys, `observed_at` is ISO 8601 with its offset, Decimals are text ("1.50"), tuples
are lists. **None is "not known", never 0.** Allocated figures (`total_…`, `cpu_cores`, `memory_mb`,
`storage_mb`) are what the worker gives to the nodes; used ones (`used_…`) are what they took of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from lcm.cml.defaults import is_weightless
from lcm.cml.observation_fields import Fields, ObservationMalformed
from lcm.cml.records import Record

__all__ = [
    "InterfaceObservation",
    "MissingPart",
    "NodeObservation",
    "ObservationMalformed",
    "ResourceObservation",
]

NOT_RUNNING = frozenset({None, "DEFINED_ON_CORE", "STOPPED"})


@dataclass(frozen=True)
class MissingPart(Record):
    """A part that could not be read: `nodes`, `simulation_stats`, `nodes[R1].memory_mb`…, and why."""

    part: str
    message: str

    @classmethod
    def from_dict(cls, values: object, path: str = "errors") -> MissingPart:
        fields = Fields.of(values, path)
        return cls(fields.text("part"), fields.text("message"))


@dataclass(frozen=True)
class InterfaceObservation(Record):
    """An interface; `mac_address` is the one in use, addresses are None when they could not be asked for."""

    id: str
    label: str
    slot: int | None = None
    state: str | None = None
    is_connected: bool | None = None
    mac_address: str | None = None
    ip4: tuple[str, ...] | None = None
    ip6: tuple[str, ...] | None = None

    @classmethod
    def from_dict(cls, values: object, path: str = "interface") -> InterfaceObservation:
        fields = Fields.of(values, path)
        return cls(
            id=fields.text("id"),
            label=fields.text("label"),
            slot=fields.whole_or_none("slot"),
            state=fields.text_or_none("state"),
            is_connected=fields.flag_or_none("is_connected"),
            mac_address=fields.text_or_none("mac_address"),
            ip4=fields.texts_or_none("ip4"),
            ip6=fields.texts_or_none("ip6"),
        )


@dataclass(frozen=True)
class NodeObservation(Record):
    """A node: what it was given, what it used of it, its ports by name and its interfaces.

    `cpu_cores` is cpus × cpu_limit / 100. `interfaces` is None when they could not be read.
    """

    id: str
    label: str
    node_definition: str
    image_definition: str | None = None
    state: str | None = None
    compute_id: str | None = None
    cpus: int | None = None
    cpu_limit: int | None = None
    cpu_cores: Decimal | None = None
    memory_mb: int | None = None
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
        """Whether the node takes part in the lab; a state we do not know counts as running."""
        return self.state not in NOT_RUNNING

    @property
    def is_weightless(self) -> bool:
        """Whether it is a connector or a switch, which run no machine."""
        return is_weightless(self.node_definition)

    @classmethod
    def from_dict(cls, values: object, path: str = "node") -> NodeObservation:
        fields = Fields.of(values, path)
        return cls(
            id=fields.text("id"),
            label=fields.text("label"),
            node_definition=fields.text("node_definition"),
            image_definition=fields.text_or_none("image_definition"),
            state=fields.text_or_none("state"),
            compute_id=fields.text_or_none("compute_id"),
            cpus=fields.whole_or_none("cpus"),
            cpu_limit=fields.whole_or_none("cpu_limit"),
            cpu_cores=fields.decimal_or_none("cpu_cores"),
            memory_mb=fields.whole_or_none("memory_mb"),
            storage_mb=fields.whole_or_none("storage_mb"),
            cpu_usage_percent=fields.decimal_or_none("cpu_usage_percent"),
            memory_usage_percent=fields.decimal_or_none("memory_usage_percent"),
            used_cpu_cores=fields.decimal_or_none("used_cpu_cores"),
            used_memory_mb=fields.whole_or_none("used_memory_mb"),
            used_storage_mb=fields.whole_or_none("used_storage_mb"),
            tags=fields.texts_or_none("tags") or (),
            ports=fields.wholes_or_none("ports") or {},
            interfaces=fields.entries_or_none("interfaces", InterfaceObservation.from_dict),
        )


@dataclass(frozen=True)
class ResourceObservation(Record):
    """A lab at one moment: totals over its nodes, the nodes, and the ports that their tags hold, by name.

    When the nodes could not be read, `nodes` is empty and the totals, `actual_node_count`,
    `node_definitions_used` and `observed_ports` are None. `incomplete` names the fields that are None or
    too small because something could not be read, and `errors` says why.
    """

    observed_at: datetime
    observer: str
    lab_id: str
    cml_version: str | None = None
    total_cpu_cores: Decimal | None = None
    total_memory_mb: int | None = None
    total_storage_mb: int | None = None
    used_cpu_cores: Decimal | None = None
    used_memory_mb: int | None = None
    used_storage_mb: int | None = None
    nodes: tuple[NodeObservation, ...] = ()
    actual_node_count: int | None = None
    node_definitions_used: dict[str, int] | None = None
    observed_ports: dict[str, int] | None = None
    simulation_stats: dict[str, object] | None = None
    incomplete: tuple[str, ...] = ()
    errors: tuple[MissingPart, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything could be read."""
        return not self.incomplete and not self.errors

    @classmethod
    def from_dict(cls, values: object) -> ResourceObservation:
        """The inverse of to_dict; unknown keys are left out, a wrong value raises ObservationMalformed."""
        fields = Fields.of(values, "")
        return cls(
            observed_at=fields.moment("observed_at"),
            observer=fields.text("observer"),
            lab_id=fields.text("lab_id"),
            cml_version=fields.text_or_none("cml_version"),
            total_cpu_cores=fields.decimal_or_none("total_cpu_cores"),
            total_memory_mb=fields.whole_or_none("total_memory_mb"),
            total_storage_mb=fields.whole_or_none("total_storage_mb"),
            used_cpu_cores=fields.decimal_or_none("used_cpu_cores"),
            used_memory_mb=fields.whole_or_none("used_memory_mb"),
            used_storage_mb=fields.whole_or_none("used_storage_mb"),
            nodes=fields.entries_or_none("nodes", NodeObservation.from_dict) or (),
            actual_node_count=fields.whole_or_none("actual_node_count"),
            node_definitions_used=fields.wholes_or_none("node_definitions_used"),
            observed_ports=fields.wholes_or_none("observed_ports"),
            simulation_stats=fields.mapping_or_none("simulation_stats"),
            incomplete=fields.texts_or_none("incomplete") or (),
            errors=fields.entries_or_none("errors", MissingPart.from_dict) or (),
        )
