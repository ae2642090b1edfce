"""Nodes and ports of a definition that has no topology."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lcm.allocation import divide_among
from lcm.cml.errors import MAX_ERRORS
from lcm.cml.limits import MAX_TAGS
from lcm.cml.model import TopologyNode
from lcm.cml.ports import PortTag, TagError, format_tag, parse_tag
from lcm.cml.requirements import MB_PER_GB
from lcm.cml.tags import PortLedger

# Where the picture of the definition shows the nodes: in rows.
COLUMNS, DISTANCE = 6, 100


def build_nodes(
    entries: Sequence[Mapping[str, Any]],
    ports: Sequence[Mapping[str, Any]],
    requirements: Mapping[str, Decimal],
) -> tuple[TopologyNode, ...]:
    """Return nodes whose sizes sum to the requirements, divided by the sizes in the entries."""
    sizes = [
        {name: entry.get(name, 0) for name in ("cpu_cores", "memory_mb", "storage_gb")} for entry in entries
    ]
    parts = divide_among(sizes, requirements)
    tags: dict[str, list[str]] = {}
    for port in ports:
        tags.setdefault(port["node_label"], []).append(tag_of(port))
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


def tag_of(port: Mapping[str, Any]) -> str:
    """Return the tag that asks for a port."""
    return format_tag(PortTag(port["protocol"], port["outside"], port["inside"], port["transport"]))


def label_problems(labels: Sequence[str]) -> list[str]:
    """Return a sentence for each label that several nodes have."""
    twice = dict.fromkeys(label for label in labels if labels.count(label) > 1)
    return [f"Several nodes have the label “{label}”." for label in twice]


def port_problems(ports: Sequence[Mapping[str, Any]], labels: Collection[str]) -> list[str]:
    """Return a sentence for each port that cannot be used, by the rules of an import."""
    found: list[str] = []
    ledger = PortLedger()
    per_node = dict.fromkeys(labels, 0)
    for number, port in enumerate(ports, 1):
        problem = _port_problem(port, f"port {number}", per_node, ledger)
        if problem and len(found) < MAX_ERRORS:
            found.append(f"Port {number}: {problem}")
    return found


def _port_problem(
    port: Mapping[str, Any], holder: str, per_node: dict[str, int], ledger: PortLedger
) -> str | None:
    label, tag = port["node_label"], tag_of(port)
    if label not in per_node:
        return f"There is no node “{label}”."
    per_node[label] += 1
    if per_node[label] > MAX_TAGS:
        return f"A node has at most {MAX_TAGS} ports."
    try:
        read = parse_tag(tag)
    except TagError as error:
        return str(error)
    held_by = ledger.claim(read, holder) if read else None
    return held_by and f"The outside port {port['outside']}/{port['transport']} is used by {held_by}."
