"""Plugin that places nothing on cordoned or ending slots."""

from __future__ import annotations

from dataclasses import dataclass

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
