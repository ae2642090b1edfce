"""Candidate nodes for jobs of one shape, updated as nodes fill."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import ge
from typing import TYPE_CHECKING

import numpy as np

from scheduling.placement.framework.callbacks import PredicateFn, ScoreFn
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.node_order import NodeOrder
from scheduling.placement.framework.nodes import PORTS, Flags, Floats, Indexes, Ints, Nodes, NodeState
from scheduling.placement.framework.plugin_calls import (
    MAX_AMOUNT,
    FixedResults,
    call_predicate,
    call_score,
    call_score_on_node,
    needed,
)

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

NEVER = -np.inf
# With more changed nodes than this, removing duplicates is cheaper than evaluating them twice.
MAX_WITH_DUPLICATES = 300


@dataclass(eq=False)
class Candidates(ABC):
    """The results of all plugins for one shape."""

    _ssn: SchedulingSession
    task: Task
    job: Job
    _fixed: FixedResults
    _needs: Sequence[int]
    # The number of releases when no node was left; until it grows, no node will fit.
    _exhausted: int = field(default=-1, init=False)

    def best(self) -> int | None:
        """Return the index of the node with the highest score; of equal scores the first by name."""
        release_count = self._ssn.release_count
        if self._exhausted == release_count:
            return None
        number = self._best()
        if number is None:
            self._exhausted = release_count
        return number

    @abstractmethod
    def _best(self) -> int | None: ...

    @abstractmethod
    def allows(self, number: int) -> bool: ...

    def allowed_if_empty(self) -> Flags:
        """Return the nodes that would accept the job if they were empty."""
        return self._fixed.allowed

    @abstractmethod
    def score_by_plugin(self, number: int) -> dict[str, float]:
        """Return the current score of the best node by plugin."""

    def rescore(self, number: int) -> dict[str, float]:
        """Return the same with every plugin called again."""
        by_plugin: dict[str, float] = {}
        for plugin, scores in self._fixed.by_plugin:
            by_plugin[plugin] = by_plugin.get(plugin, 0.0) + scores[number]
        active = [fn for fn in self._ssn.scores if not fn.fixed and not fn.excluded]
        for fn, score in zip(active, self._rescored(active, number), strict=True):
            by_plugin[fn.plugin] = by_plugin.get(fn.plugin, 0.0) + score
        return by_plugin

    def _rescored(self, active: Sequence[ScoreFn], number: int) -> list[float]:
        ssn, state = self._ssn, NodeState(self._ssn.nodes, number)
        return [call_score_on_node(ssn, fn, self.task, self.job, state) for fn in active]


@dataclass(eq=False)
class RankedCandidates(Candidates):
    """Candidates for shapes that need only minimum amounts and share an order of nodes."""

    _ranking: NodeOrder
    # The scores by plugin in the shared order, and this shape's offset from them.
    _columns: list[tuple[str, list[float], float]] = field(default_factory=list, init=False)
    _active: Sequence[ScoreFn] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._ranking.admit(self._needs)

    def _best(self) -> int | None:
        return self._ranking.best_node(self._needs)

    def allows(self, number: int) -> bool:
        enough = all(map(ge, self._ssn.nodes.left[number], self._needs))
        return enough and bool(self._fixed.allowed[number])

    def score_by_plugin(self, number: int) -> dict[str, float]:
        if self._active is not self._ranking.active:
            self._compare(number)
        by_plugin: dict[str, float] = {}
        for plugin, scores, offset in self._columns:
            by_plugin[plugin] = by_plugin.get(plugin, 0.0) + scores[number] + offset
        return by_plugin

    def _compare(self, number: int) -> None:
        """Return the offset of this shape's scores from the shared order, measured on one node."""
        self._active = active = self._ranking.active
        self._columns = [(plugin, scores, 0.0) for plugin, scores in self._fixed.by_plugin]
        for fn, scores, score in zip(
            active, self._ranking.score_columns, self._rescored(active, number), strict=True
        ):
            self._columns.append((fn.plugin, scores, score - scores[number]))


@dataclass(eq=False)
class EvaluatedCandidates(Candidates):
    """Candidates for all other shapes: calls every plugin for every node, and again for changed nodes."""

    _called: Sequence[PredicateFn]

    def __post_init__(self) -> None:
        self._least: Ints = np.array(self._needs, np.int64)
        self._seen = len(self._ssn.changed)
        self._scored = [fn for fn in self._ssn.scores if not fn.fixed and not fn.excluded]
        self._excluded = self._ssn.scores_excluded
        self._scores: Floats = np.empty(0)
        self._evaluate(None)

    def _best(self) -> int | None:
        if not len(self._scores):
            return None
        self._refresh()
        number = int(self._scores.argmax())
        return None if self._scores[number] == NEVER else number

    def allows(self, number: int) -> bool:
        self._refresh()
        return bool(self._scores[number] != NEVER)

    def score_by_plugin(self, number: int) -> dict[str, float]:
        return self.rescore(number)

    def _refresh(self) -> None:
        changed, seen = self._ssn.changed, self._seen
        self._seen = len(changed)
        if self._seen != seen:
            at = np.frombuffer(changed[seen:], np.int64)
            self._evaluate(at if len(at) <= MAX_WITH_DUPLICATES else _distinct(at, len(self._scores)))
        if self._excluded != self._ssn.scores_excluded:
            self._excluded = self._ssn.scores_excluded
            self._scored = [fn for fn in self._scored if not fn.excluded]
            self._evaluate(None)

    def _evaluate(self, indexes: Indexes | None) -> None:
        ssn, task, job = self._ssn, self.task, self.job
        nodes, fixed = Nodes(ssn.nodes, indexes), self._fixed
        unsuitable: Flags = np.any(nodes.levels < self._least, axis=1)
        if not fixed.all_allowed:
            unsuitable |= ~nodes.of(fixed.allowed)
        for fn in self._called:
            unsuitable |= ~call_predicate(ssn, fn, task, job, nodes)
        score: Floats = self._base(nodes)
        for score_fn in self._scored:
            score = score + call_score(ssn, score_fn, task, job, nodes, unsuitable)
        np.putmask(score, unsuitable, NEVER)
        if indexes is None:
            self._scores = score
        else:
            self._scores[indexes] = score

    def _base(self, nodes: Nodes) -> Floats:
        """Return the fixed part of the score; a single number if it is equal on all nodes."""
        fixed = self._fixed
        if fixed.same_score is None:
            return nodes.of(fixed.scores) + 0.0
        if self._scored:
            return np.asarray(fixed.same_score)
        return np.full(len(nodes), fixed.same_score)


def candidates_for(ssn: SchedulingSession, task: Task, job: Job, fixed: FixedResults) -> Candidates:
    """Return the candidates of this shape, by the fastest method that its plugins allow."""
    applying = [fn for fn in ssn.predicates if not fn.fixed and _applies(ssn, fn, task, job)]
    needs = _needs(ssn, applying, task)
    called = [fn for fn in applying if fn.need is None]
    ranking = None if called else ssn.node_order(task, job, fixed, needs)
    if ranking is None:
        return EvaluatedCandidates(ssn, task, job, fixed, needs, called)
    return RankedCandidates(ssn, task, job, fixed, needs, ranking)


def _applies(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job) -> bool:
    """Return whether a predicate applies to this job; a failing one does not and is reported."""
    try:
        return fn.when is None or bool(fn.when(task, job))
    except Exception as error:
        ssn.failures.record(fn.plugin, error)
        return False


def _needs(ssn: SchedulingSession, applying: Sequence[PredicateFn], task: Task) -> list[int]:
    """Return all minimum amounts as one row; of two for the same column the larger."""
    minimums = [-MAX_AMOUNT] * (PORTS + 1)
    for fn in applying:
        if fn.need is not None:
            try:
                column, amount = needed(fn.need, task)
                minimums[column] = max(minimums[column], amount)
            except Exception as error:
                ssn.failures.record(fn.plugin, error)
    return minimums


def _distinct(numbers: Indexes, length: int) -> Indexes:
    present = np.zeros(length, np.bool_)
    present[numbers] = True
    return np.flatnonzero(present)
