"""Plugin that fills GPUs one by one, so that whole ones stay free."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.options import number
from scheduling.placement.framework.amounts import GPU
from scheduling.placement.framework.callbacks import Band
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Floats, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession
from scheduling.placement.plugins.gpus import (
    device_in_use,
    in_use,
    in_use_batch,
    requests_gpus,
    score_without_gpus,
    score_without_gpus_batch,
)


@register_plugin("gpupack")
@dataclass(frozen=True)
class GpuPackPlugin(Plugin):
    """Prefer the fullest GPU and slot for fractions; keep work without GPUs off GPU slots."""

    weight: float = number(1, 0, 100)

    def on_session_open(self, ssn: SchedulingSession) -> None:
        if not any(node.capacity[GPU] for node in ssn.snapshot.nodes):
            return
        ssn.add_node_order_fn(
            score, batch=score_batch, band=Band.RESOURCE_TYPE, weight=self.weight, ranks_by=requests_gpus
        )
        ssn.add_gpu_order_fn(device_score)


def score(task: Task, job: Job, node: NodeState) -> float:
    return in_use(node) if task.request[GPU] else score_without_gpus(task, node)


def score_batch(task: Task, job: Job, nodes: Nodes) -> Floats:
    return in_use_batch(nodes) if task.request[GPU] else score_without_gpus_batch(task, nodes)


def device_score(task: Task, node: NodeState, device: int) -> float:
    return device_in_use(node, device)
