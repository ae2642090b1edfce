"""A picture of a topology, with the nodes at their CML coordinates, scaled to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, ngettext

WIDTH, HEIGHT = 420, 260
MARGIN_X, MARGIN_Y = 44, 30


@dataclass(frozen=True)
class PictureNode:
    label: str
    kind: str
    x: float
    y: float
    mark: NodeMark | None = None


@dataclass(frozen=True)
class NodeMark:
    """The state of a node, in words and as a status, and where its link leads."""

    status: str
    word: str
    url: str = ""


@dataclass(frozen=True)
class Picture:
    nodes: list[PictureNode]
    links: list[tuple[float, float, float, float]]
    # The links as pairs of node labels.
    ends: list[tuple[str, str]]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def has_links(self) -> bool:
        """Return whether nodes lead to their rows."""
        return any(node.mark and node.mark.url for node in self.nodes)

    @property
    def description(self) -> str:
        nodes, links = len(self.nodes), len(self.links)
        node_count = ngettext("%(count)s node", "%(count)s nodes", nodes) % {"count": f"{nodes:,}"}
        link_count = ngettext("%(count)s link", "%(count)s links", links) % {"count": f"{links:,}"}
        return gettext("%(nodes)s, %(links)s") % {"nodes": node_count, "links": link_count}


def picture_of(
    nodes: Sequence[dict[str, Any]],
    links: Sequence[dict[str, Any]],
    marks: Mapping[str, NodeMark] | None = None,
) -> Picture:
    """Scale the coordinates of nodes and links to the picture; marks are by node label."""
    marks = marks or {}
    xs = _scaled([node["x"] for node in nodes], MARGIN_X, WIDTH - MARGIN_X)
    ys = _scaled([node["y"] for node in nodes], MARGIN_Y, HEIGHT - MARGIN_Y)
    labels = {node["id"]: node["label"] for node in nodes}
    places = {node["id"]: (x, y) for node, x, y in zip(nodes, xs, ys, strict=True)}
    return Picture(
        nodes=[
            PictureNode(node["label"], node["node_definition"], *places[node["id"]], marks.get(node["label"]))
            for node in nodes
        ],
        links=[(*places[link["n1"]], *places[link["n2"]]) for link in links],
        ends=[(labels[link["n1"]], labels[link["n2"]]) for link in links],
    )


def _scaled(values: Sequence[float], low: float, high: float) -> list[float]:
    """Spread values over a range; equal values are placed in its middle."""
    least, most = min(values), max(values)
    if least == most:
        return [(low + high) / 2] * len(values)
    factor = (high - low) / (most - least)
    return [round(low + (value - least) * factor, 1) for value in values]
