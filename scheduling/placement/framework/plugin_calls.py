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
class FixedResults:
    """Results that are constant during a cycle, shared by jobs of one system, set of labels and kind."""

    allowed: Flags
    scores: Floats
    # Results by plugin, in call order.
    by_plugin: Sequence[tuple[str, list[float]]]
    # Set if every node has the same result, to avoid a lookup per node.
    all_allowed: bool
    same_score: float | None

    @property
    def signature(self) -> Hashable:
        """Return a key that is equal if all results are."""
        return self.allowed.tobytes(), *(tuple(scores) for _, scores in self.by_plugin)


def fixed_results(ssn: SchedulingSession, task: Task, job: Job) -> FixedResults:
    nodes = Nodes(ssn.nodes)
    allowed, scores = nodes.all(True), np.zeros(len(nodes))
    by_plugin: list[tuple[str, list[float]]] = []
    for fn in ssn.predicates:
        if fn.fixed:
            allowed &= call_predicate(ssn, fn, task, job, nodes)
    for score in ssn.scores:
        if score.fixed:
            plugin_scores = call_score(ssn, score, task, job, nodes)
            scores += plugin_scores
            by_plugin.append((score.plugin, plugin_scores.tolist()))
    same = float(scores[0]) if len(scores) and (scores == scores[0]).all() else None
    return FixedResults(allowed, scores, by_plugin, bool(allowed.all()), same)


def call_predicate(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, nodes: Nodes) -> Flags:
    """Call one predicate for some nodes; a failing one refuses nothing and is reported."""
    started = perf_counter()
    try:
        if fn.need is not None:
            column, amount = needed(fn.need, task)
            enough: Flags = nodes.levels[:, column] >= amount
            return enough
        if fn.when is not None and not fn.when(task, job):
            return nodes.all(True)
        if fn.batch is not None:
            return _checked_shape(np.asarray(fn.batch(task, job, nodes), np.bool_), nodes)
        return np.array([fn.scalar(task, job, state) is None for state in states(nodes)], np.bool_)
    except Exception as error:
        ssn.failures.record(fn.plugin, error)
        return nodes.all(True)
    finally:
        ssn.timings.add(fn.plugin, started)


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
    unsuitable: Flags | None = None,
    *,
    shared: bool = False,
) -> Floats:
    """Call one score for some nodes and weight it; a failing one counts 0 and is reported.

    `unsuitable`: nodes that cannot hold the task; their scores may be anything. `shared`: other tasks use the
    scores with a constant offset, which clipping would break.
    """
    started = perf_counter()
    try:
        if fn.batch is not None:
            scores = _checked_shape(np.asarray(fn.batch(task, job, nodes), np.float64), nodes)
        else:
            scores = np.array([fn.scalar(task, job, state) for state in states(nodes)], np.float64)
        valid = (scores >= LOWEST) & (scores <= HIGHEST)
        if unsuitable is not None:
            valid |= unsuitable
        if not valid.all():
            scores = _clipped(ssn, fn, scores, scores[~valid], shared=shared)
        if fn.excluded:
            return np.zeros(len(nodes))
        weighted: Floats = scores if fn.weight == 1 else scores * fn.weight
        return weighted
    except Exception as error:
        ssn.failures.record(fn.plugin, error)
        return np.zeros(len(nodes))
    finally:
        ssn.timings.add(fn.plugin, started)


def call_score_on_node(
    ssn: SchedulingSession, fn: ScoreFn, task: Task, job: Job, state: NodeState, *, shared: bool = False
) -> float:
    """Call the score for one node."""
    started = perf_counter()
    try:
        score = float(fn.scalar(task, job, state))
        if not LOWEST <= score <= HIGHEST and not (shared and -MAX_SCORE < score < MAX_SCORE):
            score = float(_clipped(ssn, fn, np.array([score]), np.array([score]), shared=False)[0])
        return 0.0 if fn.excluded else score * fn.weight
    except Exception as error:
        ssn.failures.record(fn.plugin, error)
        return 0.0
    finally:
        ssn.timings.seconds[fn.plugin] += perf_counter() - started


def _clipped(ssn: SchedulingSession, fn: ScoreFn, scores: Floats, invalid: Floats, *, shared: bool) -> Floats:
    """Clip scores outside 0 to 1; drop the score if it is not a number."""
    unusable = invalid[~(np.abs(invalid) < MAX_SCORE)]
    if len(unusable):
        ssn.disable_score(fn, float(unusable[0]))
        return scores
    fn.clipped = True
    ssn.failures.clipped.setdefault(fn.plugin, float(invalid[0]))
    return scores if shared else np.clip(scores, 0.0, 1.0)


def invalid_score(score: float) -> ValueError:
    return ValueError("a score is not a number" if isnan(score) else f"a score of {score:g} is out of bounds")


def _checked_shape(results: NDArray[Number], nodes: Nodes) -> NDArray[Number]:
    """Check that a batch has exactly one result per node."""
    if results.shape != (len(nodes),):
        raise ValueError(f"a batch over {len(nodes)} nodes returned an array of shape {results.shape}")
    return results


def states(nodes: Nodes) -> list[NodeState]:
    numbers = range(len(nodes.table)) if nodes.at is None else nodes.at.tolist()
    return [NodeState(nodes.table, number) for number in numbers]
