"""Partitioning of a topology: one lab per worker, with the links inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lcm.cml.topology.errors import Problems
from lcm.cml.topology.yaml_loader import load_mapping
from lcm.cml.topology.yaml_writer import write_yaml


@dataclass(frozen=True)
class TopologyPartition:
    """The topologies in the order of the groups, and the omitted links between them."""

    topologies: tuple[str, ...]
    dropped_links: tuple[str, ...]


def partition_topology(text: str, groups: Sequence[Sequence[str]]) -> TopologyPartition:
    """Divide a topology by the labels of its nodes."""
    root: dict[str, Any] = load_mapping(text, Problems())
    part_of = {label: index for index, labels in enumerate(groups) for label in labels}
    labels = {str(node["id"]): str(node["label"]) for node in root["nodes"]}

    def ends(link: Mapping[str, Any]) -> tuple[str, str]:
        return labels[str(link["n1"])], labels[str(link["n2"])]

    def parts(link: Mapping[str, Any]) -> set[int]:
        return {part_of[end] for end in ends(link)}

    links = root.get("links") or []
    return TopologyPartition(
        topologies=tuple(
            write_yaml(
                {
                    **root,
                    "nodes": [node for node in root["nodes"] if part_of[str(node["label"])] == index],
                    "links": [link for link in links if parts(link) == {index}],
                }
            )
            for index in range(len(groups))
        ),
        dropped_links=tuple(" – ".join(ends(link)) for link in links if len(parts(link)) > 1),
    )
