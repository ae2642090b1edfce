"""Allocated ports as node tags: what each node's tags must be before the lab starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lcm.cml.ports import PortTag, TagError, format_tag, parse_tag


class TemplateMismatch(Exception):
    """The lab does not have what the port template speaks of."""


class PortTaggedNode(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def tags(self) -> Sequence[str]: ...


def tags_to_write(
    nodes: Sequence[PortTaggedNode], template: Sequence[Mapping[str, Any]], ports: Mapping[str, int]
) -> dict[str, list[str]]:
    """New tags by node id, for the nodes that do not have them yet."""
    labels = {node.label for node in nodes}
    for entry in template:
        if entry["node_label"] not in labels:
            raise TemplateMismatch(f"there is no node “{entry['node_label']}” for the port {entry['name']}")
        if entry["name"] not in ports:
            raise TemplateMismatch(f"no port was allocated for {entry['name']}")
    wanted = {node.id: _wanted(node, template, ports) for node in nodes}
    return {node.id: wanted[node.id] for node in nodes if sorted(node.tags) != sorted(wanted[node.id])}


def _wanted(
    node: PortTaggedNode, template: Sequence[Mapping[str, Any]], ports: Mapping[str, int]
) -> list[str]:
    mine = [
        PortTag(entry["protocol"], ports[entry["name"]], entry["inside"], entry["transport"])
        for entry in template
        if entry["node_label"] == node.label
    ]
    return [*(tag for tag in node.tags if not is_port_tag(tag)), *map(format_tag, mine)]


def is_port_tag(tag: str) -> bool:
    return parse_port(tag) is not None


def parse_port(tag: str) -> PortTag | None:
    """The port in a tag, None when there is none that could be read."""
    try:
        return parse_tag(tag)
    except TagError:
        return None
