"""What plugins answer about nodes: never able to break a cycle, and timed."""

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

# More than any band and weight can make of a score, and little enough that no sum of scores overflows.
MAX_SCORE = 1e100
# The range of a score, with some room for the rounding of floats.
LOWEST, HIGHEST = -1e-9, 1 + 1e-9
# More than any node has.
MAX_AMOUNT: int = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class FixedAnswers:
    """Answers that hold for a whole cycle, shared by jobs of one system, set of labels and kind."""

    open_to: Flags
    scores: Floats
    # What each plugin gave, in the order they were asked.
    by_plugin: Sequence[tuple[str, list[float]]]
    # Set where every node has the same answer, so that it need not be looked up node by node.
    all_open: bool
    same_score: float | None

    @property
    def content(self) -> Hashable:
        """Equal where all answers are."""
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
    """One predicate over some nodes; one that fails says nothing, and is named."""
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
    """The column, and the least that must be there, as a number that an array can hold."""
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
    """One score over some nodes, weighted; one that fails counts nothing, and is named.

    `closed`: nodes on which the task cannot be; their scores may be anything. `shared`: other tasks use the
    scores too, at the same distance from their own, which clipping would change.
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
        if fn.left_out:
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
    """The same of one node."""
    begun = perf_counter()
    try:
        score = float(fn.scalar(task, job, state))
        if not LOWEST <= score <= HIGHEST and not (shared and -MAX_SCORE < score < MAX_SCORE):
            score = float(_clipped(ssn, fn, np.array([score]), np.array([score]), shared=False)[0])
        return 0.0 if fn.left_out else score * fn.weight
    except Exception as error:
        ssn.failures.note(fn.plugin, error)
        return 0.0
    finally:
        ssn.timings.seconds[fn.plugin] += perf_counter() - begun


def _clipped(ssn: SchedulingSession, fn: ScoreFn, found: Floats, wrong: Floats, *, shared: bool) -> Floats:
    """Scores of which some are outside 0 to 1: clipped if they are numbers, otherwise not heard."""
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
    """A batch answers for every node it was asked about, neither fewer nor more."""
    if found.shape != (len(nodes),):
        raise ValueError(f"a batch over {len(nodes)} nodes gave an array of shape {found.shape}")
    return found


def states(nodes: Nodes) -> list[NodeState]:
    numbers = range(len(nodes.table)) if nodes.at is None else nodes.at.tolist()
    return [NodeState(nodes.table, number) for number in numbers]
