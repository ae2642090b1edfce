"""Fill level of a slot, which binpack maximizes and spread minimizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Floats, Nodes, NodeState
from scheduling.placement.framework.session import SchedulingSession


class FillLevel:
    """The weighted mean of used ÷ capacity over the resources, with the task on the slot; from 0 to 1.

    A resource that a slot does not have counts as unused.
    """

    def __init__(self, ssn: SchedulingSession, weights: Sequence[float]) -> None:
        total = sum(weights) or 1.0
        self._weights = [weight / total for weight in weights]
        # Resources with a weight.
        self._counting = [which for which, weight in enumerate(weights) if weight]
        capacity = ssn.nodes.capacity
        alike = bool((capacity == capacity[:1]).all())
        # A task adds the same amount to all slots of one size, so all tasks rank them in the same order.
        self.ranks_by: Callable[[Task], Hashable] | None = (lambda _: None) if alike else None

    def of(self, task: Task, job: Job, node: NodeState) -> float:
        used, capacity, free, request = 0.0, node.capacity, node.free, task.request
        for which in self._counting:
            there = capacity[which]
            used += (there - free[which] + request[which]) * (self._weights[which] / (there or 1))
        return used

    def of_all(self, task: Task, job: Job, nodes: Nodes) -> Floats:
        # Sum in the same order as for a single slot, so that both results are bit-identical.
        used: Floats = np.zeros(len(nodes))
        capacity, free = nodes.capacity, nodes.free
        for which in self._counting:
            there = capacity[:, which]
            used += (there - free[:, which] + task.request[which]) * (
                self._weights[which] / np.maximum(there, 1)
            )
        return used
