"""Ports in the tags of running nodes, named as in port templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from lcm.cml.ports import TagError, TaggedNode, parse_tag, port_template


@dataclass(frozen=True)
class LivePorts:
    """Ports by name, for the lab and for each node in order, and the unreadable tags."""

    all: dict[str, int]
    by_node: tuple[dict[str, int], ...]
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NodeTags:
    """A node's label and some or all of its tags."""

    label: str
    tags: tuple[str, ...]


def ports_by_node(nodes: Sequence[TaggedNode]) -> LivePorts:
    """Name the ports as a topology's port template does. Malformed tags are reported, not raised."""
    problems: list[tuple[str, str]] = []
    readable = [NodeTags(node.label, _port_tags(node, problems)) for node in nodes]
    named = iter(port_template(readable))
    by_node = tuple(
        {entry.name: entry.outside for entry in islice(named, len(node.tags))} for node in readable
    )
    return LivePorts(
        {name: port for ports in by_node for name, port in ports.items()}, by_node, tuple(problems)
    )


def _port_tags(node: TaggedNode, problems: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return the tags that name a port, and record a problem for each malformed one."""
    tags = []
    for tag in node.tags:
        try:
            if parse_tag(tag):
                tags.append(tag)
        except TagError as error:
            problems.append((node.label, str(error)))
    return tuple(tags)
