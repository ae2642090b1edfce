"""Comparison of a definition's port template with the ports of its newest sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lcm.cml.observation.live_ports import NodeTags
from lcm.cml.ports import PortTemplateEntry, port_template, readable_port
from lcm.cml.topology.port_comparison import Lab, PortLine, compare_template, suggested_template
from lcm.models import DefinitionRevision, LabletDefinition
from observations.models import NotCountedReason, SessionObservation
from observations.selectors.evidence import raw_nodes

RECENT = 20


@dataclass(frozen=True)
class PortReview:
    """Template and observed ports, over the newest `sessions` with this template."""

    revision: DefinitionRevision
    sessions: int
    lines: list[PortLine]

    @property
    def suggested_template(self) -> list[PortTemplateEntry]:
        return suggested_template(self.lines)

    @property
    def has_actions(self) -> bool:
        """Return whether a difference can be applied."""
        return any(line.action for line in self.lines)


def port_review_of(definition: LabletDefinition) -> PortReview:
    """Compare the current template with the newest RECENT sessions that were given its ports.

    Excluded sessions and sessions with unreadable ports do not count.
    """
    revision = definition.revision
    template = [PortTemplateEntry(**entry) for entry in revision.port_template]
    names = {entry.name for entry in template}
    observed = _observed_ports(definition, revision)
    other = [pk for pk, ports in observed.items() if set(ports) != names]
    nodes = _nodes_of(other)
    labs = [
        _lab(ports, raw_nodes(nodes[pk]), template) if pk in nodes else Lab(template)
        for pk, ports in observed.items()
    ]
    labels = {node["label"] for node in definition.nodes}
    return PortReview(revision, len(labs), compare_template(template, labs, labels))


def _observed_ports(
    definition: LabletDefinition, current: DefinitionRevision
) -> dict[UUID, Mapping[str, int]]:
    rows = SessionObservation.objects.filter(
        definition=definition,
        epoch=definition.topology_hash,
        revision__in=_with_same_template(definition, current),
        observed_ports__isnull=False,
    ).exclude(not_counted_reason=NotCountedReason.EXCLUDED)
    newest = rows.order_by("-observed_at", "-session_id")
    found = newest.values_list("session_id", "observed_ports", "observed_resources__incomplete")[:RECENT]
    return {pk: ports or {} for pk, ports, incomplete in found if "observed_ports" not in (incomplete or ())}


def _with_same_template(definition: LabletDefinition, current: DefinitionRevision) -> list[UUID]:
    """Return the current revision and the ones directly before it with the same ports."""
    found = []
    for pk, template in definition.revisions.order_by("-number").values_list("pk", "port_template"):
        if template != current.port_template:
            break
        found.append(pk)
    return found


def _nodes_of(session_ids: Sequence[UUID]) -> dict[UUID, Any]:
    rows = SessionObservation.objects.filter(session_id__in=session_ids)
    return dict(rows.values_list("session_id", "observed_resources"))


def _lab(
    ports: Mapping[str, int], nodes: Sequence[Mapping[str, Any]], template: Sequence[PortTemplateEntry]
) -> Lab:
    """Return the ports by node tag; without tags, the template's ports by name."""
    readable = [
        NodeTags(node["label"], tuple(filter(readable_port, node.get("tags") or ()))) for node in nodes
    ]
    tagged = port_template(readable)
    known = {entry.name: entry for entry in template} | {entry.name: entry for entry in tagged}
    return Lab(
        [known[name] for name in ports if name in known], [name for name in ports if name not in known]
    )
