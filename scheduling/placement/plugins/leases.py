"""Plugin that limits the number of jobs on a slot."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import LEASES, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("leases")
@dataclass(frozen=True)
class LeasesPlugin(Plugin):
    """Limit the leases of a slot: one per job."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(has_free_lease, need=(LEASES, lambda _: 1), code="leases", summary=no_lease_text)


def has_free_lease(task: Task, job: Job, node: NodeState) -> Reason | None:
    if node.free_leases >= 1:
        return None
    most = node.node.max_leases
    return Reason("leases", "its only lease is taken" if most == 1 else f"all {most} leases are taken")


def no_lease_text(task: Task, job: Job, nodes: Nodes) -> str:
    return "without a free lease"
