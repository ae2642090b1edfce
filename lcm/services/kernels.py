"""The kernels of a session: its nodes, each with its part of what the session is placed for."""

from __future__ import annotations

from decimal import Decimal

from lcm.allocation import divide
from lcm.models import Kernel, LabletSession
from lcm.models.definitions import RESOURCES

# Which configured size of a node decides its part of a resource; GPUs follow the CPU.
_SIZE_OF_NODE = {
    "cpu_cores": "cpu_cores",
    "memory_gb": "memory_mb",
    "storage_gb": "storage_gb",
    "gpu": "cpu_cores",
}


def kernels_for(session: LabletSession) -> list[Kernel]:
    """One kernel a node; their amounts sum to the pinned revision's requirements exactly."""
    nodes = session.definition.nodes
    parts = {
        name: divide(
            getattr(session.revision, name), [Decimal(str(node[_SIZE_OF_NODE[name]])) for node in nodes]
        )
        for name in RESOURCES
    }
    return [
        Kernel(
            session=session,
            node_label=node["label"],
            node_definition=node["node_definition"],
            **{name: parts[name][index] for name in RESOURCES},
        )
        for index, node in enumerate(nodes)
    ]
