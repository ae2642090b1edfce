"""GPU usage of slots, shared by gpupack and gpuspread."""

from __future__ import annotations

import numpy as np

from scheduling.placement.framework.amounts import GPU, UNIT
from scheduling.placement.framework.model import Task
from scheduling.placement.framework.nodes import Floats, Nodes, NodeState


def in_use(node: NodeState) -> float:
    """Return the used share of a slot's GPUs, from 0 to 1; 0 without GPUs."""
    capacity = node.capacity[GPU]
    return min(max(1 - node.free[GPU] / capacity, 0.0), 1.0) if capacity else 0.0


def in_use_batch(nodes: Nodes) -> Floats:
    capacity = nodes.capacity[:, GPU]
    shares = 1 - nodes.free[:, GPU] / np.maximum(capacity, 1)
    return np.where(capacity > 0, np.minimum(np.maximum(shares, 0.0), 1.0), 0.0)


def score_without_gpus(task: Task, node: NodeState) -> float:
    """Score slots for work without GPUs: half of the score is for slots that have none."""
    return 1.0 if not task.request[GPU] and not node.capacity[GPU] else 0.0


def score_without_gpus_batch(task: Task, nodes: Nodes) -> Floats:
    if task.request[GPU]:
        return np.zeros(len(nodes))
    return np.where(nodes.capacity[:, GPU] > 0, 0.0, 1.0)


def requests_gpus(task: Task) -> bool:
    return task.request[GPU] > 0


def device_in_use(node: NodeState, device: int) -> float:
    """Return the used share of one GPU, from 0 to 1."""
    whole = node.node.gpus()[device]
    return 1 - node.free_devices[device] / max(whole, 1) if whole <= UNIT else 0.0
