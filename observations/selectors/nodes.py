"""Resources of each node of a lab over its newest sessions."""

from __future__ import annotations

from dataclasses import dataclass

from observations.selectors.evidence import Evidence, NodeFigures, nodes_in, samples

NEWEST = 100


@dataclass(frozen=True)
class NodeAggregate:
    """One node over several sessions: maximum and latest of each figure."""

    label: str
    kind: str
    sessions: int
    largest: NodeFigures
    latest: NodeFigures


def node_aggregates(evidence: Evidence) -> list[NodeAggregate]:
    """Return the nodes over the newest hundred sessions, most memory first, from memory's source."""
    source = evidence.views["memory_gb"].source
    newest = samples(evidence).order_by("-observed_at").values_list("observed_resources", "peak_resources")
    seen: dict[str, list[NodeFigures]] = {}
    peaks: dict[str, list[NodeFigures]] = {}
    for stored, peak in newest[:NEWEST]:
        for node in nodes_in(stored, source=source):
            seen.setdefault(node.label, []).append(node)
        for node in nodes_in(peak or {}, source=source):
            peaks.setdefault(node.label, []).append(node)
    found = [
        NodeAggregate(label, rows[0].kind, len(rows), _largest([*rows, *peaks.get(label, ())]), rows[0])
        for label, rows in seen.items()
    ]
    return sorted(found, key=lambda node: (-(node.largest.memory or 0), node.label))


def _largest(rows: list[NodeFigures]) -> NodeFigures:
    def most(name: str) -> int | None:
        return max((value for row in rows if (value := getattr(row, name)) is not None), default=None)

    return NodeFigures(rows[0].label, rows[0].kind, most("cpu"), most("memory"), most("storage"))
