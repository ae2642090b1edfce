"""Callbacks that plugins register: stored with the plugin's name, timed, with failures isolated."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cmp_to_key
from typing import Any

from scheduling.placement.framework.model import Job, JobPart, Queue, Task
from scheduling.placement.framework.nodes import Flags, Floats, Nodes, NodeState


class Band(IntEnum):
    """Named weights of scores: a higher band always outweighs a lower one.

    A score is between 0 and 1 and a plugin's weight at most 100, so that bands never overlap.
    """

    PLACEMENT = 1
    RESOURCE_TYPE = 1_000
    AVAILABILITY = 1_000_000
    SPOT = 1_000_000_000
    TOPOLOGY = 1_000_000_000_000


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node or job was refused: a code to count by, and a sentence."""

    code: str
    text: str


Predicate = Callable[[Task, Job, NodeState], Reason | None]
BatchPredicate = Callable[[Task, Job, Nodes], Flags]
Score = Callable[[Task, Job, NodeState], float]
BatchScore = Callable[[Task, Job, Nodes], Floats]
# Formats one sentence for all nodes that one predicate refuses.
Summary = Callable[[Task, Job, Nodes], str]
When = Callable[[Task, Job], bool]
# A column of a node's free amounts, and how much of it a task needs.
Need = tuple[int, Callable[[Task], int]]
ShapeOf = Callable[[Job], Hashable]
RanksBy = Callable[[Task], Hashable]


@dataclass(slots=True)
class PredicateFn:
    plugin: str
    # The code of all its reasons; empty if each reason has its own.
    code: str
    scalar: Predicate
    batch: BatchPredicate | None = None
    summary: Summary | None = None
    # The result depends neither on placements nor on the request.
    fixed: bool = False
    # Called only for tasks for which this returns True.
    when: When | None = None
    # Equivalent to a minimum in a column of the free amounts.
    need: Need | None = None


@dataclass(slots=True)
class ScoreFn:
    plugin: str
    weight: float
    scalar: Score
    batch: BatchScore | None = None
    fixed: bool = False
    # For tasks with an equal value the scores differ by the same amount on every node.
    ranks_by: RanksBy | None = None
    # It returned an invalid score and is ignored for the rest of the cycle.
    excluded: bool = False
    # It returned a score outside 0 to 1: its scores are clipped, and no node order is shared for it.
    clipped: bool = False


@dataclass(slots=True)
class OrderFn:
    """Comparison of two jobs, queues or tasks; `key` gives the same order as a sort key."""

    plugin: str
    kind: str
    key: Callable[[Any], Any]


@dataclass(slots=True)
class EventHandler:
    plugin: str
    allocate: Callable[[Job, JobPart], None]
    deallocate: Callable[[Job, JobPart], None]


@dataclass
class Failures:
    """Failures by plugin; the cycle continues without the failed results."""

    by_plugin: dict[str, str] = field(default_factory=dict)
    count: dict[str, int] = field(default_factory=dict)
    # The first score of a plugin outside 0 to 1; the cycle continues with the clipped score.
    clipped: dict[str, float] = field(default_factory=dict)

    def record(self, plugin: str, error: Exception) -> None:
        self.by_plugin.setdefault(plugin, f"{type(error).__name__}: {error}"[:300])
        self.count[plugin] = self.count.get(plugin, 0) + 1


@dataclass
class Timings:
    """Seconds spent in each plugin."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, plugin: str, started: float) -> None:
        self.seconds[plugin] += time.perf_counter() - started


def order_key(
    compare: Callable[[Any, Any], int] | None, key: Callable[[Any], Any] | None
) -> Callable[[Any], Any]:
    """Return the sort key of a comparison or key function; with both, the key is used and must give the same
    order."""
    if key is not None:
        return key
    if compare is None:
        raise TypeError("An order needs a comparison or a key.")
    return cmp_to_key(compare)


CompareJobs = Callable[[Job, Job], int]
CompareQueues = Callable[[Queue, Queue], int]
CompareTasks = Callable[[Task, Task], int]
