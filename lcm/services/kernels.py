"""Kernels of a session: one per node, each with its part of the requirements."""

from __future__ import annotations

from lcm.domain.allocation import allocate_to_nodes
from lcm.models import Kernel, LabletSession


def build_kernels(session: LabletSession) -> list[Kernel]:
    """Return one unsaved kernel per node; their amounts sum to the revision's requirements exactly."""
    nodes = session.definition.nodes
    parts = allocate_to_nodes(nodes, session.revision.requirements)
    return [
        Kernel(
            session=session,
            node_label=node["label"],
            node_definition=node["node_definition"],
            **amounts,
        )
        for node, amounts in zip(nodes, parts, strict=True)
    ]
