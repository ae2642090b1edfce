"""Value objects of a topology, as stored and shown."""

from dataclasses import dataclass
from decimal import Decimal

from lcm.cml.ports import PortTemplateEntry
from lcm.cml.records import Record, to_json_value
from lcm.domain.resources import Amounts


@dataclass(frozen=True)
class NodeInterface(Record):
    """An interface of a node. Its id is unique only within the node."""

    id: str
    label: str


@dataclass(frozen=True)
class TopologyNode(Record):
    """A node: values from the file (None if not set), and the resulting resources."""

    id: str
    label: str
    node_definition: str
    image_definition: str | None
    cpus: int | None
    cpu_limit: int | None
    ram_mb: int | None
    boot_disk_gb: int | None
    data_volume_gb: int | None
    tags: tuple[str, ...]
    x: int
    y: int
    interfaces: tuple[NodeInterface, ...]
    cpu_cores: Decimal
    memory_mb: int
    storage_gb: Decimal


@dataclass(frozen=True)
class TopologyLink(Record):
    """A link between interface i1 of node n1 and interface i2 of node n2, by id."""

    id: str
    label: str
    n1: str
    i1: str
    n2: str
    i2: str


@dataclass(frozen=True)
class Topology(Record):
    """An imported topology. `epoch` changes when its resources or structure change."""

    title: str
    description: str
    notes: str
    schema_version: str
    nodes: tuple[TopologyNode, ...]
    links: tuple[TopologyLink, ...]
    ports: tuple[PortTemplateEntry, ...]
    requirements: Amounts
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    epoch: str

    @property
    def node_count(self) -> int:
        """Return the number of nodes, including connectors and switches."""
        return len(self.nodes)

    def to_dict(self) -> dict[str, object]:
        """Return all fields and the node count as JSON values."""
        requirements = to_json_value(self.requirements.as_dict())
        return {**super().to_dict(), "requirements": requirements, "node_count": self.node_count}
