"""Wait reasons: the result of every predicate on every node; and the smaller request that would fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scheduling.placement.framework.amounts import CPU, MEMORY, RESOURCES, STORAGE, Amounts
from scheduling.placement.framework.callbacks import PredicateFn, Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Floats, Indexes, Ints, Nodes, NodeState
from scheduling.placement.framework.plugin_calls import call_predicate

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

EXAMPLE_SLOTS = 3
FAILED = "plugin-failed"
CLIPPED = "score-clipped"
# Resources that can be reduced; half a GPU is a different request.
DIVISIBLE = (CPU, MEMORY, STORAGE)


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """One reason: the number of nodes, some of their names, and a phrase for all: “cordoned”."""

    code: str
    plugin: str
    nodes: int
    text: str
    example_slots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacementExplanation:
    """All reasons, the most frequent first."""

    nodes: int
    counts: tuple[ReasonCount, ...] = ()
    impossible: bool = False
    failures: tuple[ReasonCount, ...] = ()
    # The assumption of the reasons: “1 of its 2 kernels placed”.
    placed: str = ""
    # How much of a gang could be placed, as a sentence.
    partial: str = ""

    @property
    def main_reason(self) -> str:
        return self.counts[0].code if self.counts else ("impossible" if self.impossible else "no-slots")

    @property
    def message(self) -> str:
        """Format all reasons as one sentence."""
        return f"{self._reasons} {self.partial}" if self.partial else self._reasons

    @property
    def _reasons(self) -> str:
        if not self.counts:
            return "No slot is ready." if not self.nodes else "Sessions ahead in the queue take every slot."
        if not self.counts[0].nodes:
            return " ".join(each.text for each in self.counts)
        about_slots = [each for each in self.counts if each.nodes]
        if self.nodes == 1:
            reasons = "; ".join(each.text for each in about_slots)
            if self.placed:
                return f"With {self.placed}, the only ready slot does not fit: {reasons}."
            return f"The only ready slot does not fit: {reasons}."
        reasons = "; ".join(f"{each.nodes} {each.text}" for each in about_slots)
        if self.placed:
            return f"With {self.placed}, none of {self.nodes} ready slots fits: {reasons}."
        return f"None of {self.nodes} ready slots fits: {reasons}."


def explain(ssn: SchedulingSession, task: Task, job: Job) -> PlacementExplanation:
    """Evaluate every predicate on every node in its current state."""
    every = Nodes(ssn.nodes)
    counts = [
        count
        for fn in ssn.predicates
        if (refused := ~call_predicate(ssn, fn, task, job, every)).any()
        for count in _counts(ssn, fn, task, job, refused)
    ]
    counts.sort(key=lambda count: -count.nodes)
    return PlacementExplanation(
        len(every), tuple(counts), not is_possible(ssn, task, job), failed_plugins(ssn)
    )


def explain_refusal(ssn: SchedulingSession, reasons: Sequence[tuple[str, Reason]]) -> PlacementExplanation:
    """Explain a job that may not be placed on any node, with the plugin that refused it."""
    counts = tuple(ReasonCount(reason.code, plugin, 0, reason.text) for plugin, reason in reasons)
    return PlacementExplanation(len(ssn.nodes), counts, failures=failed_plugins(ssn))


def reasons_on(ssn: SchedulingSession, task: Task, job: Job, number: int) -> list[Reason]:
    """Return every reason against one node."""
    found = []
    for fn in ssn.predicates:
        try:
            reason = fn.scalar(task, job, NodeState(ssn.nodes, number))
        except Exception as error:
            ssn.failures.note(fn.plugin, error)
            reason = Reason(FAILED, f"the plugin {fn.plugin} failed: {error}")
        if reason is not None:
            found.append(reason)
    return found


def is_possible(ssn: SchedulingSession, task: Task, job: Job) -> bool:
    """Return whether any node, present or launchable, could hold the job if it were empty."""
    return bool(allowed_by_all(ssn, task, job, Nodes(ssn.empty_node_kinds)).any())


def allowed_by_all(ssn: SchedulingSession, task: Task, job: Job, nodes: Nodes) -> Flags:
    found = nodes.all(True)
    for fn in ssn.predicates:
        found &= call_predicate(ssn, fn, task, job, nodes)
    return found


def failed_plugins(ssn: SchedulingSession) -> tuple[ReasonCount, ...]:
    """Return plugins that failed, and plugins whose scores were clipped."""
    failed = (
        ReasonCount(FAILED, plugin, 0, f"The plugin {plugin} failed and was ignored: {error}")
        for plugin, error in sorted(ssn.failures.by_plugin.items())
    )
    clipped = (
        ReasonCount(CLIPPED, plugin, 0, f"The plugin {plugin}: {clipped_text(score)}")
        for plugin, score in sorted(ssn.failures.clipped.items())
    )
    return (*failed, *clipped)


def clipped_text(score: float) -> str:
    return f"a score of {score:g} was clipped; scores are from 0 to 1."


def _counts(
    ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, refused: Flags
) -> Iterator[ReasonCount]:
    """Count reasons by code; a predicate registered with a code has only that one."""
    numbers = np.flatnonzero(refused)
    by_code = {fn.code: numbers} if fn.code else _by_code(ssn, fn, task, job, numbers)
    rows = ssn.nodes.rows
    for code, some in by_code.items():
        example_slots = tuple(rows[number].name for number in some[:EXAMPLE_SLOTS])
        yield ReasonCount(
            code, fn.plugin, len(some), _text(ssn, fn, task, job, Nodes(ssn.nodes, some)), example_slots
        )


def _by_code(
    ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, numbers: Indexes
) -> dict[str, Indexes]:
    """Return the refused nodes by reason code; by plugin name if the reason has no code."""
    found: dict[str, list[int]] = {}
    for number in numbers.tolist():
        try:
            reason = fn.scalar(task, job, NodeState(ssn.nodes, number))
        except Exception as error:
            ssn.failures.note(fn.plugin, error)
            reason = None
        code = reason.code if isinstance(reason, Reason) else ""
        found.setdefault(code or fn.plugin, []).append(number)
    return {code: np.array(some) for code, some in found.items()}


def _text(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, refused: Nodes) -> str:
    try:
        if fn.summary is not None:
            return fn.summary(task, job, refused)
        assert refused.at is not None
        reason = fn.scalar(task, job, NodeState(ssn.nodes, int(refused.at[0])))
    except Exception as error:
        ssn.failures.note(fn.plugin, error)
        return f"refused by {fn.plugin}"
    return f"refused ({reason.text})" if isinstance(reason, Reason) else f"refused by {fn.plugin}"


@dataclass(frozen=True, slots=True)
class SmallerRequest:
    """A request that would fit now, and on how many nodes."""

    request: Amounts
    changed: tuple[str, ...]
    nodes: int


def smaller_request(ssn: SchedulingSession, task: Task, job: Job) -> SmallerRequest | None:
    """Return the smallest reduction that lets the task fit a node; None if a reduction does not help."""
    open_to = _open_but_for_amounts(ssn, task, job)
    wanted = [which for which in DIVISIBLE if task.request[which]]
    if not open_to.any() or not wanted:
        return None
    requested: Ints = np.array([task.request[which] for which in wanted])
    left: Ints = np.minimum(ssn.nodes.free[:, wanted], requested)
    given_up: Floats = ((requested - left) / requested).sum(axis=1)
    given_up[~open_to | (left <= 0).any(axis=1)] = np.inf
    best = int(given_up.argmin())
    if not 0 < given_up[best] < np.inf:
        return None
    amounts = list(task.request)
    for which, amount in zip(wanted, left[best].tolist(), strict=True):
        amounts[which] = amount
    request = (amounts[0], amounts[1], amounts[2], amounts[3])
    changed = tuple(RESOURCES[which] for which in wanted if request[which] != task.request[which])
    fitting = allowed_by_all(ssn, replace(task, request=request), job, Nodes(ssn.nodes))
    return SmallerRequest(request, changed, int(fitting.sum())) if fitting.any() else None


def _open_but_for_amounts(ssn: SchedulingSession, task: Task, job: Job) -> np.ndarray:
    every = Nodes(ssn.nodes)
    names = {RESOURCES[which] for which in DIVISIBLE}
    found = every.all(True)
    for fn in ssn.predicates:
        if fn.code not in names:
            found &= call_predicate(ssn, fn, task, job, every)
    return found
