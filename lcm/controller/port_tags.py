"""Allocated ports as node tags, written before a lab starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lcm.cml.ports import PortTag, TagError, format_tag, parse_tag


class TemplateMismatch(Exception):
    """The lab does not match the port template."""


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
    """Return the new tags by node id, for nodes whose tags must change."""
    labels = {node.label for node in nodes}
    for entry in template:
        if entry["node_label"] not in labels:
            raise TemplateMismatch(f"the lab has no node “{entry['node_label']}” for port {entry['name']}")
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
    """Return the port in a tag, or None if the tag has no readable port."""
    try:
        return parse_tag(tag)
    except TagError:
        return None
