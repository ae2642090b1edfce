"""Plugin that keeps the load of slots even."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.options import number
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Floats, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession
from scheduling.placement.plugins.fill_level import FillLevel


@register_plugin("spread")
@dataclass(frozen=True)
class SpreadPlugin(Plugin):
    """Prefer the slot that is emptiest with the task on it."""

    weight: float = number(1, 0, 100)
    cpu_cores: float = number(1, 0, 100)
    memory_gb: float = number(1, 0, 100)
    storage_gb: float = number(0, 0, 100)
    gpu: float = number(0, 0, 100)

    def on_session_open(self, ssn: SchedulingSession) -> None:
        filling = FillLevel(ssn, (self.cpu_cores, self.memory_gb, self.storage_gb, self.gpu))

        def score(task: Task, job: Job, node: NodeState) -> float:
            return 1.0 - filling.of(task, job, node)

        def batch(task: Task, job: Job, nodes: Nodes) -> Floats:
            return 1.0 - filling.of_all(task, job, nodes)

        ssn.add_node_order_fn(score, batch=batch, weight=self.weight, ranks_by=filling.ranks_by)
