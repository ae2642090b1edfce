"""Plugins that fill slots, so that others stay empty, or keep the load of slots even."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from lcm.domain.resources import RESOURCE_NAMES
from scheduling.options import number
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Floats, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


class FillLevel:
    """The weighted mean of used ÷ capacity over the resources, with the task on the slot; from 0 to 1.

    A resource that a slot does not have counts as unused. With `emptiest_first` the score is 1 - mean.
    """

    def __init__(self, ssn: SchedulingSession, weights: Sequence[float], *, emptiest_first: bool) -> None:
        self._emptiest_first = emptiest_first
        total = sum(weights) or 1.0
        self._weights = [weight / total for weight in weights]
        # Resources with a weight.
        self._counting = [column for column, weight in enumerate(weights) if weight]
        capacity = ssn.nodes.capacity
        alike = bool((capacity == capacity[:1]).all())
        # A task adds the same amount to all slots of one size, so all tasks rank them in the same order.
        self.ranks_by: Callable[[Task], Hashable] | None = (lambda _: None) if alike else None

    def of(self, task: Task, job: Job, node: NodeState) -> float:
        used, capacity, free, request = 0.0, node.capacity, node.free, task.request
        for column in self._counting:
            size = capacity[column]
            used += (size - free[column] + request[column]) * (self._weights[column] / (size or 1))
        return 1.0 - used if self._emptiest_first else used

    def of_all(self, task: Task, job: Job, nodes: Nodes) -> Floats:
        # Sum in the same order as for a single slot, so that both results are bit-identical.
        used: Floats = np.zeros(len(nodes))
        capacity, free = nodes.capacity, nodes.free
        for column in self._counting:
            size = capacity[:, column]
            used += (size - free[:, column] + task.request[column]) * (
                self._weights[column] / np.maximum(size, 1)
            )
        return 1.0 - used if self._emptiest_first else used


SHARE = number(0, 100)
WEIGHT = "Weight of this plugin among the plugins that score slots."


@dataclass(frozen=True)
class FillLevelPlugin(Plugin):
    """Base of plugins that score slots by their fill level."""

    # Described by `Field`: pydantic reads the docstrings of the plugin itself only.
    weight: Annotated[float, SHARE, Field(description=WEIGHT)] = 1
    cpu_cores: Annotated[float, SHARE, Field(description="Weight of the filled share of CPU.")] = 1
    memory_gb: Annotated[float, SHARE, Field(description="Weight of the filled share of memory.")] = 1
    storage_gb: Annotated[float, SHARE, Field(description="Weight of the filled share of storage.")] = 0
    gpu: Annotated[float, SHARE, Field(description="Weight of the filled share of GPU.")] = 0

    emptiest_first: ClassVar[bool] = False

    def on_session_open(self, ssn: SchedulingSession) -> None:
        weights = [getattr(self, name) for name in RESOURCE_NAMES]
        filling = FillLevel(ssn, weights, emptiest_first=self.emptiest_first)
        ssn.add_node_order_fn(filling.of, batch=filling.of_all, weight=self.weight, ranks_by=filling.ranks_by)


@register_plugin("binpack")
@dataclass(frozen=True)
class BinpackPlugin(FillLevelPlugin):
    """Prefer the slot that is fullest with the task on it."""


@register_plugin("spread")
@dataclass(frozen=True)
class SpreadPlugin(FillLevelPlugin):
    """Prefer the slot that is emptiest with the task on it."""

    emptiest_first = True
