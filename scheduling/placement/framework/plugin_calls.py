"""Calls of plugins for nodes: timed, with failures isolated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import ceil, isnan
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduling.placement.framework.callbacks import Need, PredicateFn, ScoreFn
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Floats, Nodes, NodeState, Number

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

# Larger than any weighted score, and small enough that no sum of scores overflows.
MAX_SCORE = 1e100
# The range of a score, with a tolerance for rounding.
LOWEST, HIGHEST = -1e-9, 1 + 1e-9
# More than any node has.
MAX_AMOUNT: int = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class FixedAnswers:
    """Results that are constant during a cycle, shared by jobs of one system, set of labels and kind."""

    open_to: Flags
    scores: Floats
    # Results by plugin, in call order.
    by_plugin: Sequence[tuple[str, list[float]]]
    # Set if every node has the same result, to avoid a lookup per node.
    all_open: bool
    same_score: float | None

    @property
    def signature(self) -> Hashable:
        """Return a key that is equal if all results are."""
        return self.open_to.tobytes(), *(tuple(given) for _, given in self.by_plugin)


def fixed_answers(ssn: SchedulingSession, task: Task, job: Job) -> FixedAnswers:
    every = Nodes(ssn.nodes)
    open_to, scores = every.all(True), np.zeros(len(every))
    by_plugin: list[tuple[str, list[float]]] = []
    for fn in ssn.predicates:
        if fn.fixed:
            open_to &= call_predicate(ssn, fn, task, job, every)
    for score in ssn.scores:
        if score.fixed:
            found = call_score(ssn, score, task, job, every)
            scores += found
            by_plugin.append((score.plugin, found.tolist()))
    same = float(scores[0]) if len(scores) and (scores == scores[0]).all() else None
    return FixedAnswers(open_to, scores, by_plugin, bool(open_to.all()), same)


def call_predicate(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, nodes: Nodes) -> Flags:
    """Call one predicate for some nodes; a failing one refuses nothing and is reported."""
    begun = perf_counter()
    try:
        if fn.need is not None:
            column, amount = needed(fn.need, task)
            least: Flags = nodes.levels[:, column] >= amount
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


def needed(need: Need, task: Task) -> tuple[int, int]:
    """Return the column and the minimum it must have, as a number that fits an array."""
    column, amount = need
    return column, min(ceil(amount(task)), MAX_AMOUNT)


def call_score(
    ssn: SchedulingSession,
    fn: ScoreFn,
    task: Task,
    job: Job,
    nodes: Nodes,
    closed: Flags | None = None,
    *,
    shared: bool = False,
) -> Floats:
    """Call one score for some nodes and weight it; a failing one counts 0 and is reported.

    `closed`: nodes that cannot hold the task; their scores may be anything. `shared`: other tasks use the
    scores with a constant offset, which clipping would break.
    """
    begun = perf_counter()
    try:
        if fn.batch is not None:
            found = _one_each(np.asarray(fn.batch(task, job, nodes), np.float64), nodes)
        else:
            found = np.array([fn.scalar(task, job, state) for state in states(nodes)], np.float64)
        right = (found >= LOWEST) & (found <= HIGHEST)
        if closed is not None:
            right |= closed
        if not right.all():
            found = _clipped(ssn, fn, found, found[~right], shared=shared)
        if fn.excluded:
            return np.zeros(len(nodes))
        weighted: Floats = found if fn.weight == 1 else found * fn.weight
        return weighted
    except Exception as error:
        ssn.failures.note(fn.plugin, error)
        return np.zeros(len(nodes))
    finally:
        ssn.timings.add(fn.plugin, begun)


def call_score_on_node(
    ssn: SchedulingSession, fn: ScoreFn, task: Task, job: Job, state: NodeState, *, shared: bool = False
) -> float:
    """Call the score for one node."""
    begun = perf_counter()
    try:
        score = float(fn.scalar(task, job, state))
        if not LOWEST <= score <= HIGHEST and not (shared and -MAX_SCORE < score < MAX_SCORE):
            score = float(_clipped(ssn, fn, np.array([score]), np.array([score]), shared=False)[0])
        return 0.0 if fn.excluded else score * fn.weight
    except Exception as error:
        ssn.failures.note(fn.plugin, error)
        return 0.0
    finally:
        ssn.timings.seconds[fn.plugin] += perf_counter() - begun


def _clipped(ssn: SchedulingSession, fn: ScoreFn, found: Floats, wrong: Floats, *, shared: bool) -> Floats:
    """Clip scores outside 0 to 1; drop the score if it is not a number."""
    beyond = wrong[~(np.abs(wrong) < MAX_SCORE)]
    if len(beyond):
        ssn.disable_score(fn, float(beyond[0]))
        return found
    fn.clipped = True
    ssn.failures.clipped.setdefault(fn.plugin, float(wrong[0]))
    return found if shared else np.clip(found, 0.0, 1.0)


def is_invalid_score(score: float) -> ValueError:
    return ValueError("a score is not a number" if isnan(score) else f"a score of {score:g} is out of bounds")


def _one_each(found: NDArray[Number], nodes: Nodes) -> NDArray[Number]:
    """Check that a batch has exactly one result per node."""
    if found.shape != (len(nodes),):
        raise ValueError(f"a batch over {len(nodes)} nodes gave an array of shape {found.shape}")
    return found


def states(nodes: Nodes) -> list[NodeState]:
    numbers = range(len(nodes.table)) if nodes.at is None else nodes.at.tolist()
    return [NodeState(nodes.table, number) for number in numbers]
