"""Plugin that keeps non-preemptible work off spot slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduling.placement.framework.callbacks import Band, Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Floats, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("spot")
@dataclass(frozen=True)
class SpotPlugin(Plugin):
    """Keep non-preemptible work off spot slots, and prefer on-demand slots for the rest."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(allows, batch=allows_batch, code="spot", summary=spot_text, fixed=True)
        ssn.add_node_order_fn(score, batch=score_batch, band=Band.SPOT, fixed=True)


def allows(task: Task, job: Job, node: NodeState) -> Reason | None:
    if job.preemptible or not node.node.spot:
        return None
    return Reason("spot", "spot (the session is not preemptible)")


def spot_text(task: Task, job: Job, nodes: Nodes) -> str:
    return "spot (the session is not preemptible)"


def allows_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    return nodes.all(True) if job.preemptible else ~nodes.spot


def score(task: Task, job: Job, node: NodeState) -> float:
    return 0.0 if node.node.spot else 1.0


def score_batch(task: Task, job: Job, nodes: Nodes) -> Floats:
    return np.where(nodes.spot, 0.0, 1.0)
