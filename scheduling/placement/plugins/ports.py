"""Plugin that requires enough free ports on the worker."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import PORTS, Nodes, NodeState, at_least
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("ports")
@dataclass(frozen=True)
class PortsPlugin(Plugin):
    """Require all ports of a job to be free; leaked ports are not free."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(
            enough, need=(PORTS, lambda task: at_least(task.ports)), code="ports", summary=lacking
        )


def enough(task: Task, job: Job, node: NodeState) -> Reason | None:
    if not task.ports or task.ports <= node.free_ports:
        return None
    return Reason("ports", f"ports: {task.ports} requested, {max(node.free_ports, 0)} free")


def lacking(task: Task, job: Job, nodes: Nodes) -> str:
    most = max(int(nodes.free_ports.max()), 0)
    return f"insufficient ports ({task.ports} requested, at most {most} free)"
