"""Plugins that fill GPUs one by one, so that whole ones stay free, or keep their usage even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from scheduling.options import number
from scheduling.placement.framework.amounts import GPU, UNIT
from scheduling.placement.framework.callbacks import Band
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Floats, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@dataclass(frozen=True)
class GpuPlugin(Plugin):
    """Base of plugins that score slots and GPUs by the used share of their GPUs, or by the free share."""

    # Described by `Field`: pydantic reads the docstrings of the plugin itself only.
    weight: Annotated[
        float, number(0, 100), Field(description="Weight of this plugin among the plugins that score slots.")
    ] = 1
    emptiest_first: ClassVar[bool] = False

    def on_session_open(self, ssn: SchedulingSession) -> None:
        if any(node.capacity[GPU] for node in ssn.snapshot.nodes):
            ssn.add_node_order_fn(
                self.score,
                batch=self.score_batch,
                band=Band.RESOURCE_TYPE,
                weight=self.weight,
                ranks_by=requests_gpus,
            )
            ssn.add_gpu_order_fn(self.device_score)

    def score(self, task: Task, job: Job, node: NodeState) -> float:
        if not task.request[GPU]:
            # Half of the score is for slots that have no GPUs.
            return 0.0 if node.capacity[GPU] else 1.0
        share = in_use(node)
        return 1.0 - share if self.emptiest_first else share

    def score_batch(self, task: Task, job: Job, nodes: Nodes) -> Floats:
        if not task.request[GPU]:
            return np.where(nodes.capacity[:, GPU] > 0, 0.0, 1.0)
        shares = in_use_batch(nodes)
        return 1.0 - shares if self.emptiest_first else shares

    def device_score(self, task: Task, node: NodeState, device: int) -> float:
        share = device_in_use(node, device)
        return 1.0 - share if self.emptiest_first else share


@register_plugin("gpupack")
@dataclass(frozen=True)
class GpuPackPlugin(GpuPlugin):
    """Prefer the fullest GPU and slot for fractions; keep work without GPUs off GPU slots."""


@register_plugin("gpuspread")
@dataclass(frozen=True)
class GpuSpreadPlugin(GpuPlugin):
    """Prefer the emptiest GPU and slot for fractions; keep work without GPUs off GPU slots."""

    emptiest_first = True


def requests_gpus(task: Task) -> bool:
    return task.request[GPU] > 0


def in_use(node: NodeState) -> float:
    """Return the used share of a slot's GPUs, from 0 to 1; 0 without GPUs."""
    capacity = node.capacity[GPU]
    return min(max(1 - node.free[GPU] / capacity, 0.0), 1.0) if capacity else 0.0


def in_use_batch(nodes: Nodes) -> Floats:
    capacity = nodes.capacity[:, GPU]
    shares = 1 - nodes.free[:, GPU] / np.maximum(capacity, 1)
    return np.where(capacity > 0, np.minimum(np.maximum(shares, 0.0), 1.0), 0.0)


def device_in_use(node: NodeState, device: int) -> float:
    """Return the used share of one GPU, from 0 to 1."""
    capacity = node.node.gpus()[device]
    return 1 - node.free_devices[device] / max(capacity, 1) if capacity <= UNIT else 0.0
