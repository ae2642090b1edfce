"""Allocated ports as node tags, written before a lab starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lcm.cml.client.results import CmlNode
from lcm.cml.ports import PortTag, format_tag, readable_port


class TemplateMismatch(Exception):
    """The lab does not match the port template."""


def tags_to_write(
    nodes: Sequence[CmlNode], template: Sequence[Mapping[str, Any]], ports: Mapping[str, int]
) -> dict[str, list[str]]:
    """Return the new tags by node id, for nodes whose tags must change."""
    labels = {node.label for node in nodes}
    for entry in template:
        if entry["node_label"] not in labels:
            raise TemplateMismatch(f"the lab has no node “{entry['node_label']}” for port {entry['name']}")
        if entry["name"] not in ports:
            raise TemplateMismatch(f"no port was allocated for {entry['name']}")
    new_tags = {node.id: _new_tags(node, template, ports) for node in nodes}
    return {node.id: new_tags[node.id] for node in nodes if sorted(node.tags) != sorted(new_tags[node.id])}


def _new_tags(node: CmlNode, template: Sequence[Mapping[str, Any]], ports: Mapping[str, int]) -> list[str]:
    node_ports = [
        PortTag(entry["protocol"], ports[entry["name"]], entry["inside"], entry["transport"])
        for entry in template
        if entry["node_label"] == node.label
    ]
    return [*(tag for tag in node.tags if not readable_port(tag)), *map(format_tag, node_ports)]
