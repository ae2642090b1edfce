"""Plugin that matches the labels of jobs and slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("labels")
@dataclass(frozen=True)
class LabelsPlugin(Plugin):
    """Require every label of the job on the slot, with the same value."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(matches, batch=matches_batch, code="labels", summary=mismatch_text, fixed=True)


def matches(task: Task, job: Job, node: NodeState) -> Reason | None:
    missing = [f"{key}={value}" for key, value in job.labels if node.node.labels.get(key) != value]
    return Reason("labels", f"without {', '.join(missing)}") if missing else None


def matches_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    if not job.labels:
        return nodes.all(True)
    wanted = job.labels
    return np.array(
        [all(node.labels.get(key) == value for key, value in wanted) for node in nodes.rows], np.bool_
    )


def mismatch_text(task: Task, job: Job, nodes: Nodes) -> str:
    wanted = ", ".join(f"{key}={value}" for key, value in job.labels)
    return f"not labelled {wanted}"
