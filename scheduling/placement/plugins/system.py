"""Plugin that matches the system of jobs and slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("system")
@dataclass(frozen=True)
class SystemPlugin(Plugin):
    """Place a job that names a system only on slots of that system."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(matches, batch=matches_batch, code="system", summary=mismatch_text, fixed=True)


def matches(task: Task, job: Job, node: NodeState) -> Reason | None:
    if not job.system or node.node.system == job.system:
        return None
    return Reason("system", f"runs {node.node.system or 'another system'}, not {job.system}")


def matches_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    if not job.system:
        return nodes.all(True)
    return np.array([node.system == job.system for node in nodes.rows], np.bool_)


def mismatch_text(task: Task, job: Job, nodes: Nodes) -> str:
    return f"not running {job.system}"
