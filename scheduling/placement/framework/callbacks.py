"""Callbacks as plugins register them: kept with the plugin's name, timed, and never able to break a cycle."""

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
    """Named weights of scores: whatever a lower band says, a higher one decides first.

    A score is between 0 and 1, a plugin's weight at most 100, so that bands never reach into each other.
    """

    PLACEMENT = 1
    RESOURCE_TYPE = 1_000
    AVAILABILITY = 1_000_000
    SPOT = 1_000_000_000
    TOPOLOGY = 1_000_000_000_000


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was refused: a code to count by, and a sentence."""

    code: str
    text: str


Predicate = Callable[[Task, Job, NodeState], Reason | None]
BatchPredicate = Callable[[Task, Job, Nodes], Flags]
Score = Callable[[Task, Job, NodeState], float]
BatchScore = Callable[[Task, Job, Nodes], Floats]
# The sentence for all nodes that one predicate refuses: “lack memory: 8 GB asked, at most 6 GB free”.
Summary = Callable[[Task, Job, Nodes], str]
When = Callable[[Task, Job], bool]
# A column of what is left of a node, and how much of it a task needs.
Need = tuple[int, Callable[[Task], int]]
ShapeOf = Callable[[Job], Hashable]
RanksBy = Callable[[Task], Hashable]


@dataclass(slots=True)
class PredicateFn:
    plugin: str
    # Of all its reasons; empty if each has its own.
    code: str
    scalar: Predicate
    batch: BatchPredicate | None = None
    summary: Summary | None = None
    # The answer depends neither on what is placed nor on what is asked for.
    fixed: bool = False
    # Asked only where this says so.
    when: When | None = None
    # The same as “there is at least so much in that column of what is left”.
    need: Need | None = None


@dataclass(slots=True)
class ScoreFn:
    plugin: str
    weight: float
    scalar: Score
    batch: BatchScore | None = None
    fixed: bool = False
    # Tasks for which this is equal have scores that differ by the same amount on every node.
    ranks_by: RanksBy | None = None
    # It gave what is no score, and counts nothing for the rest of the cycle.
    left_out: bool = False
    # It gave a score outside 0 to 1: its scores are clipped, and no order of nodes is shared for it.
    clipped: bool = False


@dataclass(slots=True)
class OrderFn:
    """How two of a kind compare; `key` gives the same order as something that sorts."""

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
    """What went wrong in plugins, by plugin: the cycle goes on without their answer."""

    by_plugin: dict[str, str] = field(default_factory=dict)
    count: dict[str, int] = field(default_factory=dict)
    # The first score of a plugin that was outside 0 to 1; the cycle goes on with the nearest of the two.
    clipped: dict[str, float] = field(default_factory=dict)

    def note(self, plugin: str, error: Exception) -> None:
        self.by_plugin.setdefault(plugin, f"{type(error).__name__}: {error}"[:300])
        self.count[plugin] = self.count.get(plugin, 0) + 1


@dataclass
class Timings:
    """Seconds spent in each plugin."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, plugin: str, begun: float) -> None:
        self.seconds[plugin] += time.perf_counter() - begun


def order_key(
    compare: Callable[[Any, Any], int] | None, key: Callable[[Any], Any] | None
) -> Callable[[Any], Any]:
    """One of the two is enough; with both, the key is used and must order alike."""
    if key is not None:
        return key
    if compare is None:
        raise TypeError("An order needs a comparison or a key.")
    return cmp_to_key(compare)


CompareJobs = Callable[[Job, Job], int]
CompareQueues = Callable[[Queue, Queue], int]
CompareTasks = Callable[[Task, Task], int]
