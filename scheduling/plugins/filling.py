"""How full a slot would be: what binpack wants high and spread wants low."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduling.framework.amounts import Amounts
from scheduling.framework.model import Job, Part, Task
from scheduling.framework.nodes import Floats, Nodes, NodeState
from scheduling.framework.session import SchedulingSession


class Filling:
    """The weighted mean of used ÷ capacity over the resources, with the task on the slot; from 0 to 1.

    A resource that a slot does not have counts as unused. How full slots are is kept up with every placement,
    so that asking costs little.
    """

    def __init__(self, ssn: SchedulingSession, weights: Sequence[float]) -> None:
        total = sum(weights) or 1.0
        self._table = table = ssn.nodes
        self._weights = [weight / total for weight in weights]
        self._per_unit: Floats = np.array(self._weights) / np.maximum(table.capacity, 1)
        self._filled: Floats = ((table.capacity - table.free) * self._per_unit).sum(axis=1)
        # Slots of a pool are mostly alike: then one row stands for all.
        alike = len(table) > 0 and bool((table.capacity == table.capacity[0]).all())
        self._same: list[float] | None = self._per_unit[0].tolist() if alike else None
        self._added: dict[Amounts, float] = {}
        ssn.add_event_handler(allocate=self._changed, deallocate=self._changed)

    def of(self, task: Task, node: NodeState) -> float:
        used = 0.0
        for weight, capacity, free, asked in zip(
            self._weights, node.capacity, node.free, task.request, strict=True
        ):
            used += weight * (capacity - free + asked) / max(capacity, 1)
        return used

    def of_all(self, task: Task, nodes: Nodes) -> Floats:
        filled = nodes.of(self._filled)
        if self._same is None:
            # Row by row, so that a slot's score does not depend on how many others are asked about.
            each: Floats = filled + (nodes.of(self._per_unit) * np.array(task.request)).sum(axis=1)
            return each
        added = self._added.get(task.request)
        if added is None:
            added = self._added[task.request] = sum(
                amount * share for amount, share in zip(task.request, self._same, strict=True)
            )
        return filled + added

    def _changed(self, job: Job, part: Part) -> None:
        table = self._table
        number = table.index[part.node]
        a, b, c, d = table.rows[number].capacity
        free = table.levels[number].tolist()
        shares = self._same or self._per_unit[number].tolist()
        self._filled[number] = (
            (a - free[0]) * shares[0]
            + (b - free[1]) * shares[1]
            + (c - free[2]) * shares[2]
            + (d - free[3]) * shares[3]
        )
