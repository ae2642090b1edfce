"""Nodes and ports of a definition without a topology."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from lcm.cml.topology.model import TopologyNode
from lcm.cml.topology.port_templates import NodePort
from lcm.cml.topology.requirements import MB_PER_GB
from lcm.domain.allocation import allocate_to_nodes
from lcm.domain.resources import RESOURCES

# Layout of the nodes in the definition's diagram: rows of COLUMNS nodes.
COLUMNS, DISTANCE = 6, 100


def build_nodes(
    entries: Sequence[Mapping[str, Any]],
    ports: Sequence[NodePort],
    requirements: Mapping[str, Decimal],
) -> tuple[TopologyNode, ...]:
    """Return nodes whose sizes sum to the requirements, in proportion to the sizes in the entries."""
    fields = {resource.node_field for resource in RESOURCES}
    sizes = [{field: entry.get(field, 0) for field in fields} for entry in entries]
    parts = allocate_to_nodes(sizes, requirements)
    tags: dict[str, list[str]] = {}
    for port in ports:
        tags.setdefault(port.label, []).append(port.tag)
    return tuple(
        TopologyNode(
            id=f"n{index}",
            label=entry["label"],
            node_definition=entry["node_definition"],
            image_definition=None,
            cpus=None,
            cpu_limit=None,
            ram_mb=None,
            boot_disk_gb=None,
            data_volume_gb=None,
            tags=tuple(tags.get(entry["label"], ())),
            x=index % COLUMNS * DISTANCE,
            y=index // COLUMNS * DISTANCE,
            interfaces=(),
            cpu_cores=part["cpu_cores"],
            memory_mb=int(part["memory_gb"] * MB_PER_GB),
            storage_gb=part["storage_gb"],
        )
        for index, (entry, part) in enumerate(zip(entries, parts, strict=True))
    )


def label_problems(labels: Sequence[str]) -> list[str]:
    """Return a message for each label that several nodes share."""
    duplicates = dict.fromkeys(label for label in labels if labels.count(label) > 1)
    return [f"Several nodes have the label “{label}”." for label in duplicates]
