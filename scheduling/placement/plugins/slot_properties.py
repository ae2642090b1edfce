"""Plugins that match properties of a slot: in service, system, labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("cordon")
@dataclass(frozen=True)
class CordonPlugin(Plugin):
    """Keep jobs off slots that are cordoned or leaving service."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(
            in_service, batch=in_service_batch, code="cordon", summary=out_of_service, fixed=True
        )


def in_service(task: Task, job: Job, node: NodeState) -> Reason | None:
    return Reason("cordon", "cordoned") if node.node.cordoned else None


def out_of_service(task: Task, job: Job, nodes: Nodes) -> str:
    return "cordoned"


def in_service_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    return ~nodes.cordoned


@register_plugin("system")
@dataclass(frozen=True)
class SystemPlugin(Plugin):
    """Place a job that names a system only on slots of that system."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(
            runs_system, batch=runs_system_batch, code="system", summary=other_system_text, fixed=True
        )


def runs_system(task: Task, job: Job, node: NodeState) -> Reason | None:
    if not job.system or node.node.system == job.system:
        return None
    return Reason("system", f"runs {node.node.system or 'another system'}, not {job.system}")


def runs_system_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    if not job.system:
        return nodes.all(True)
    return np.array([node.system == job.system for node in nodes.rows], np.bool_)


def other_system_text(task: Task, job: Job, nodes: Nodes) -> str:
    return f"not running {job.system}"


@register_plugin("labels")
@dataclass(frozen=True)
class LabelsPlugin(Plugin):
    """Require every label of the job on the slot, with the same value."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(
            has_labels, batch=has_labels_batch, code="labels", summary=missing_labels_text, fixed=True
        )


def has_labels(task: Task, job: Job, node: NodeState) -> Reason | None:
    missing = [f"{key}={value}" for key, value in job.labels if node.node.labels.get(key) != value]
    return Reason("labels", f"without {', '.join(missing)}") if missing else None


def has_labels_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    if not job.labels:
        return nodes.all(True)
    required = job.labels
    return np.array(
        [all(node.labels.get(key) == value for key, value in required) for node in nodes.rows], np.bool_
    )


def missing_labels_text(task: Task, job: Job, nodes: Nodes) -> str:
    required = ", ".join(f"{key}={value}" for key, value in job.labels)
    return f"not labelled {required}"
