"""Where jobs of one shape can go: feasibility and scores over all nodes, kept current as nodes fill."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduling.framework.callbacks import PredicateFn, ScoreFn
from scheduling.framework.model import Job, Task
from scheduling.framework.nodes import PORTS, Flags, Floats, Indexes, Ints, Nodes, NodeState, Number

if TYPE_CHECKING:
    from scheduling.framework.session import SchedulingSession

NEVER = -np.inf
FEW = 300
NO_NUMBER = "a score is not a number"


@dataclass(frozen=True, slots=True)
class Fixed:
    """Answers that hold for a whole cycle, shared by jobs of one system, set of labels and kind."""

    open_to: Flags
    scores: Floats
    # What each plugin gave, in the order they were asked.
    by_plugin: Sequence[tuple[str, Floats]]
    # Set where every node has the same answer, so that it need not be looked up node by node.
    all_open: bool
    same_score: float | None


def fixed_answers(ssn: SchedulingSession, task: Task, job: Job) -> Fixed:
    every = Nodes(ssn.nodes)
    open_to, scores = every.all(True), np.zeros(len(every))
    by_plugin: list[tuple[str, Floats]] = []
    for fn in ssn.predicates:
        if fn.fixed:
            open_to &= allowed(ssn, fn, task, job, every)
    for score in ssn.scores:
        if score.fixed:
            found = scored(ssn, score, task, job, every)
            if np.isnan(found).any():
                ssn.failures.note(score.plugin, ValueError(NO_NUMBER))
                found = np.nan_to_num(found)
            scores += found
            by_plugin.append((score.plugin, found))
    same = float(scores[0]) if len(scores) and (scores == scores[0]).all() else None
    return Fixed(open_to, scores, by_plugin, bool(open_to.all()), same)


class Candidates:
    """The answers of all plugins for one shape.

    Only nodes that changed since it was last asked are looked at again.
    """

    __slots__ = (
        "_asked", "_exhausted", "_fixed", "_needs", "_scored", "_scores", "_seen", "_ssn", "job", "task",
    )  # fmt: skip

    def __init__(self, ssn: SchedulingSession, task: Task, job: Job, fixed: Fixed) -> None:
        self._ssn, self.task, self.job, self._fixed = ssn, task, job, fixed
        self._seen = len(ssn.changed)
        # How much had been given back when nothing was left: until more is, nothing will be.
        self._exhausted = -1
        asked = [fn for fn in ssn.predicates if not fn.fixed and _applies(ssn, fn, task, job)]
        self._asked = [fn for fn in asked if fn.need is None]
        self._needs = _needs(ssn, asked, task)
        self._scored = [fn for fn in ssn.scores if not fn.fixed]
        self._scores: Floats = np.empty(0)
        self._evaluate(None)

    def best(self) -> int | None:
        """The number of the node with the highest score; of equals the first by name."""
        if self._exhausted == self._ssn.given_back or not len(self._scores):
            return None
        self._refresh()
        number = int(self._scores.argmax())
        score = self._scores[number]
        if isnan(score):
            # The highest of all is what numpy takes a wrong number for: nobody gets a node by it.
            self._leave_out_wrong_scores()
            return self.best()
        if score == NEVER:
            self._exhausted = self._ssn.given_back
            return None
        return number

    def _leave_out_wrong_scores(self) -> None:
        """Go on without the scores that are no numbers, and name whose they are."""
        every = Nodes(self._ssn.nodes)
        right = []
        for fn in self._scored:
            if np.isnan(scored(self._ssn, fn, self.task, self.job, every)).any():
                self._ssn.failures.note(fn.plugin, ValueError(NO_NUMBER))
            else:
                right.append(fn)
        self._scored = right
        self._evaluate(None)

    def allows(self, number: int) -> bool:
        self._refresh()
        return bool(self._scores[number] != NEVER)

    def allowed_if_empty(self) -> Flags:
        """Nodes that nothing but what is on them keeps the job from."""
        return self._fixed.open_to

    def score_by_plugin(self, number: int) -> dict[str, float]:
        """What each plugin gave a node, as it is now."""
        found: dict[str, float] = {}
        for plugin, scores in self._fixed.by_plugin:
            found[plugin] = found.get(plugin, 0.0) + float(scores[number])
        for plugin, score in self._changing_scores(number):
            found[plugin] = found.get(plugin, 0.0) + score
        return found

    def _changing_scores(self, number: int) -> list[tuple[str, float]]:
        if len(self._scored) == 1:
            return [(self._scored[0].plugin, float(self._scores[number] - self._fixed.scores[number]))]
        one = Nodes(self._ssn.nodes, np.array([number], np.intp))
        return [(fn.plugin, float(scored(self._ssn, fn, self.task, self.job, one)[0])) for fn in self._scored]

    def _refresh(self) -> None:
        changed, seen = self._ssn.changed, self._seen
        self._seen = len(changed)
        if self._seen == seen:
            return
        at = np.frombuffer(changed[seen:], np.int64)
        # A few that changed twice are looked at twice: cheaper than finding out.
        self._evaluate(at if len(at) <= FEW else _each_once(at, len(self._scores)))

    def _evaluate(self, at: Indexes | None) -> None:
        ssn, task, job = self._ssn, self.task, self.job
        nodes, fixed = Nodes(ssn.nodes, at), self._fixed
        closed = (nodes.levels < self._needs).any(axis=1)
        if not fixed.all_open:
            closed |= ~nodes.of(fixed.open_to)
        for fn in self._asked:
            closed |= ~allowed(ssn, fn, task, job, nodes)
        score: Floats = self._base(nodes)
        for each in self._scored:
            score = score + scored(ssn, each, task, job, nodes)
        np.putmask(score, closed, NEVER)
        if at is None:
            self._scores = score
        else:
            self._scores[at] = score

    def _base(self, nodes: Nodes) -> Floats:
        """The part of the score that does not change; one number for all of them where that will do."""
        fixed = self._fixed
        if fixed.same_score is None:
            return nodes.of(fixed.scores) + 0.0
        if self._scored:
            return fixed.same_score  # type: ignore[return-value]
        return np.full(len(nodes), fixed.same_score)


def _each_once(numbers: Indexes, length: int) -> Indexes:
    there = np.zeros(length, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there)


def _applies(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job) -> bool:
    """Whether a predicate has anything to say of such a job; one that fails has not, and is named."""
    try:
        return fn.when is None or bool(fn.when(task, job))
    except Exception as error:
        ssn.failures.note(fn.plugin, error)
        return False


def _needs(ssn: SchedulingSession, asked: Sequence[PredicateFn], task: Task) -> Ints:
    """All least amounts as one row to compare with; of two for one column the larger."""
    found = np.full(PORTS + 1, np.iinfo(np.int64).min)
    for fn in asked:
        if fn.need is not None:
            column, amount = fn.need
            try:
                found[column] = max(found[column], amount(task))
            except Exception as error:
                ssn.failures.note(fn.plugin, error)
    return found


def allowed(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, nodes: Nodes) -> Flags:
    """One predicate over some nodes; one that fails says nothing, and is named."""
    begun = time.perf_counter()
    try:
        if fn.need is not None:
            column, amount = fn.need
            least: Flags = nodes.levels[:, column] >= amount(task)
            return least
        if fn.when is not None and not fn.when(task, job):
            return nodes.all(True)
        if fn.batch is not None:
            return _one_each(np.asarray(fn.batch(task, job, nodes), np.bool_), nodes)
        return np.array([fn.scalar(task, job, state) is None for state in states(nodes)], np.bool_)
    except Exception as error:
        ssn.failures.note(fn.plugin, error)
        return nodes.all(True)
    finally:
        ssn.timings.add(fn.plugin, begun)


def scored(ssn: SchedulingSession, fn: ScoreFn, task: Task, job: Job, nodes: Nodes) -> Floats:
    """One score over some nodes, weighted; one that fails counts nothing, and is named."""
    begun = time.perf_counter()
    try:
        if fn.batch is not None:
            found = _one_each(np.asarray(fn.batch(task, job, nodes), np.float64), nodes)
        else:
            found = np.array([fn.scalar(task, job, state) for state in states(nodes)], np.float64)
        return found if fn.weight == 1 else found * fn.weight
    except Exception as error:
        ssn.failures.note(fn.plugin, error)
        return np.zeros(len(nodes))
    finally:
        ssn.timings.add(fn.plugin, begun)


def _one_each(found: NDArray[Number], nodes: Nodes) -> NDArray[Number]:
    """A batch answers for every node it was asked about, neither fewer nor more."""
    if found.shape != (len(nodes),):
        raise ValueError(f"a batch over {len(nodes)} nodes gave an array of shape {found.shape}")
    return found


def states(nodes: Nodes) -> list[NodeState]:
    numbers = range(len(nodes.table)) if nodes.at is None else nodes.at.tolist()
    return [NodeState(nodes.table, number) for number in numbers]
