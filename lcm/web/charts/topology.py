"""A picture of a topology, with the nodes at their CML coordinates, scaled to fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import ngettext

WIDTH, HEIGHT = 420, 260
MARGIN_X, MARGIN_Y = 44, 30


@dataclass(frozen=True)
class PictureNode:
    label: str
    kind: str
    x: float
    y: float


@dataclass(frozen=True)
class Picture:
    nodes: list[PictureNode]
    links: list[tuple[float, float, float, float]]
    # The links as pairs of node labels.
    ends: list[tuple[str, str]]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def described(self) -> str:
        nodes, links = len(self.nodes), len(self.links)
        node_count = ngettext("%(count)s node", "%(count)s nodes", nodes) % {"count": f"{nodes:,}"}
        link_count = ngettext("%(count)s link", "%(count)s links", links) % {"count": f"{links:,}"}
        return f"{node_count}, {link_count}"


def picture_of(nodes: Sequence[dict[str, Any]], links: Sequence[dict[str, Any]]) -> Picture:
    """Scale the coordinates of nodes and links to the picture."""
    xs = _scaled([node["x"] for node in nodes], MARGIN_X, WIDTH - MARGIN_X)
    ys = _scaled([node["y"] for node in nodes], MARGIN_Y, HEIGHT - MARGIN_Y)
    labels = {node["id"]: node["label"] for node in nodes}
    places = {node["id"]: (x, y) for node, x, y in zip(nodes, xs, ys, strict=True)}
    return Picture(
        nodes=[PictureNode(node["label"], node["node_definition"], *places[node["id"]]) for node in nodes],
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
