"""Resource requirements of a topology, from the sizes of its nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from lcm.cml.node_sizes import UNKNOWN_NODE_SIZE, default_node_size, has_no_vm
from lcm.cml.topology.model import TopologyNode
from lcm.domain.resources import Amounts

MB_PER_GB = 1024
FULL_CPU = 100


@dataclass(frozen=True)
class NodeResources:
    """Resources of a node, with defaults for values not set."""

    cpu_cores: Decimal
    memory_mb: int
    storage_gb: Decimal


def effective_resources(
    definition: str,
    *,
    cpus: int | None,
    cpu_limit: int | None,
    ram_mb: int | None,
    boot_disk_gb: int | None,
    data_volume_gb: int | None,
) -> NodeResources:
    """Return the resources of a node. cpu_limit is a percentage of its CPUs."""
    if has_no_vm(definition):
        return NodeResources(Decimal(0), 0, Decimal(0))
    default = default_node_size(definition) or UNKNOWN_NODE_SIZE
    disk = default.disk_gb if boot_disk_gb is None else boot_disk_gb
    data = default.data_gb if data_volume_gb is None else data_volume_gb
    return NodeResources(
        Decimal((cpus or default.cpus) * (cpu_limit or FULL_CPU)) / FULL_CPU,
        ram_mb or default.ram_mb,
        Decimal(disk + data),
    )


def estimate_requirements(nodes: Iterable[TopologyNode]) -> Amounts:
    """Return the sum over the nodes, rounded up to half cores, half GB of memory and whole GB of storage."""
    counted = list(nodes)
    return Amounts(
        cpu_cores=sum((node.cpu_cores for node in counted), Decimal(0)),
        memory_gb=Decimal(sum(node.memory_mb for node in counted)) / MB_PER_GB,
        storage_gb=sum((node.storage_gb for node in counted), Decimal(0)),
    ).rounded_up()


def assumptions(nodes: Iterable[TopologyNode]) -> tuple[str, ...]:
    """Return a sentence for each node whose size was assumed."""
    return tuple(sentence for node in nodes if (sentence := _assumption(node)))


def unknown_definitions(nodes: Iterable[TopologyNode]) -> tuple[str, ...]:
    """Return a warning for each definition whose default size is unknown."""
    by_definition: dict[str, list[str]] = {}
    for node in nodes:
        if default_node_size(node.node_definition) is None and _missing(node):
            by_definition.setdefault(node.node_definition, []).append(node.label)
    return tuple(
        f"{definition} is an unknown node definition, so the size of {_some(labels)} is a guess. "
        "Set cpus, ram and boot_disk_size in the topology."
        for definition, labels in by_definition.items()
    )


def _assumption(node: TopologyNode) -> str | None:
    """Return the assumption about a node, or None if the file states all sizes."""
    assumed = _missing(node)
    if not assumed:
        return None
    sizes, values = _listed(list(assumed)), _listed(list(assumed.values()))
    if default_node_size(node.node_definition) is None:
        return f"{node.label}: the topology does not set {sizes}. LCM assumes {values}, which is a guess."
    return (
        f"{node.label}: the topology does not set {sizes}. "
        f"LCM assumes {values}, the default of {node.node_definition}."
    )


def _missing(node: TopologyNode) -> dict[str, str]:
    """Return the sizes that the file does not state, with the assumed values."""
    if has_no_vm(node.node_definition):
        return {}
    default = default_node_size(node.node_definition) or UNKNOWN_NODE_SIZE
    missing = {}
    if node.cpus is None:
        missing["CPUs"] = "1 CPU" if default.cpus == 1 else f"{default.cpus} CPUs"
    if node.ram_mb is None:
        missing["RAM"] = f"{default.ram_mb} MB"
    if node.boot_disk_gb is None:
        missing["disk"] = f"{default.disk_gb} GB"
    if node.data_volume_gb is None and default.data_gb:
        missing["a data volume"] = f"{default.data_gb} GB of data"
    return missing


def _listed(words: Sequence[str]) -> str:
    """Join words: “one, two and three”."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _some(labels: Sequence[str], most: int = 3) -> str:
    """Return the first few labels, and the number of the others."""
    if len(labels) <= most:
        return _listed(labels)
    return f"{', '.join(labels[:most])} and {len(labels) - most} more"
