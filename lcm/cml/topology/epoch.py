"""The epoch of a topology. Observations are combined only within one epoch."""

import hashlib
import json
from collections.abc import Iterable

from lcm.cml.node_sizes import has_no_vm
from lcm.cml.ports import parse_tag
from lcm.cml.topology.model import TopologyLink, TopologyNode
from lcm.cml.topology.requirements import FULL_CPU

FORMAT_VERSION = 1


def topology_epoch(nodes: Iterable[TopologyNode], links: Iterable[TopologyLink]) -> str:
    """Return a SHA-256 of resources and structure, independent of order and formatting of the file."""
    counted = sorted(nodes, key=lambda node: node.label)
    canonical = {
        "form": FORMAT_VERSION,
        "nodes": [_node_shape(node) for node in counted],
        "links": _links_shape(counted, links),
    }
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _node_shape(node: TopologyNode) -> dict[str, object]:
    """Describe a node by its configured values, so that better default sizes do not change the epoch."""
    shape: dict[str, object] = {
        "label": node.label,
        "definition": node.node_definition,
        "image": node.image_definition,
        "ports": _ports_shape(node),
    }
    if not has_no_vm(node.node_definition):
        shape |= {
            "cpus": node.cpus,
            "cpu_limit": node.cpu_limit or FULL_CPU,
            "ram_mb": node.ram_mb,
            "boot_disk_gb": node.boot_disk_gb,
            "data_volume_gb": node.data_volume_gb,
        }
    return shape


def _ports_shape(node: TopologyNode) -> list[tuple[str, str, int]]:
    """Describe the ports of a node without outside ports, which are allocated for each session."""
    ports = [port for tag in node.tags if (port := parse_tag(tag))]
    return sorted(
        (port.protocol, port.transport, -1 if port.inside is None else port.inside) for port in ports
    )


def _links_shape(nodes: list[TopologyNode], links: Iterable[TopologyLink]) -> list[list[tuple[str, str]]]:
    """Describe links by the labels at their ends, because ids are local to the file."""
    ends = {
        (node.id, interface.id): (node.label, interface.label)
        for node in nodes
        for interface in node.interfaces
    }
    return sorted(sorted([ends[link.n1, link.i1], ends[link.n2, link.i2]]) for link in links)
