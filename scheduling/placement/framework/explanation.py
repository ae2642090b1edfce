"""Wait reasons: the result of every predicate on every node; and the smaller request that would fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lcm.domain.resources import RESOURCE_NAMES
from scheduling.placement.framework.amounts import DIVISIBLE, Units
from scheduling.placement.framework.callbacks import PredicateFn, Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Floats, Indexes, Ints, Nodes, NodeState
from scheduling.placement.framework.plugin_calls import call_predicate

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

EXAMPLE_SLOTS = 3
FAILED = "plugin-failed"
CLIPPED = "score-clipped"


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
            return " ".join(reason.text for reason in self.counts)
        about_slots = [reason for reason in self.counts if reason.nodes]
        if self.nodes == 1:
            none_fits = "the only ready slot does not fit"
            reasons = "; ".join(reason.text for reason in about_slots)
        else:
            none_fits = f"none of {self.nodes} ready slots fits"
            reasons = "; ".join(f"{reason.nodes} {reason.text}" for reason in about_slots)
        assumed = f"With {self.placed}, {none_fits}" if self.placed else none_fits.capitalize()
        return f"{assumed}: {reasons}."


def explain(ssn: SchedulingSession, task: Task, job: Job) -> PlacementExplanation:
    """Evaluate every predicate on every node in its current state."""
    all_nodes = Nodes(ssn.nodes)
    counts = [
        count
        for fn in ssn.predicates
        if (refused := ~call_predicate(ssn, fn, task, job, all_nodes)).any()
        for count in _counts(ssn, fn, task, job, refused)
    ]
    counts.sort(key=lambda count: -count.nodes)
    return PlacementExplanation(
        len(all_nodes), tuple(counts), not is_possible(ssn, task, job), failed_plugins(ssn)
    )


def explain_refusal(ssn: SchedulingSession, reasons: Sequence[tuple[str, Reason]]) -> PlacementExplanation:
    """Explain a job that may not be placed on any node, with the plugin that refused it."""
    counts = tuple(ReasonCount(reason.code, plugin, 0, reason.text) for plugin, reason in reasons)
    return PlacementExplanation(len(ssn.nodes), counts, failures=failed_plugins(ssn))


def reasons_on(ssn: SchedulingSession, task: Task, job: Job, number: int) -> list[Reason]:
    """Return every reason why a task does not fit one node."""
    reasons = (_reason_on(ssn, fn, task, job, number) for fn in ssn.predicates)
    return [reason for reason in reasons if reason is not None]


def _reason_on(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, number: int) -> Reason | None:
    """Return one predicate's reason; a failure of the plugin is one too."""
    try:
        return fn.scalar(task, job, NodeState(ssn.nodes, number))
    except Exception as error:
        ssn.failures.record(fn.plugin, error)
        return Reason(FAILED, f"the plugin {fn.plugin} failed: {error}")


def is_possible(ssn: SchedulingSession, task: Task, job: Job) -> bool:
    """Return whether any node, present or launchable, could hold the job if it were empty."""
    return bool(allowed_by_all(ssn, task, job, Nodes(ssn.empty_node_kinds)).any())


def allowed_by_all(
    ssn: SchedulingSession, task: Task, job: Job, nodes: Nodes, *, ignored: Collection[str] = ()
) -> Flags:
    """Return the nodes that every predicate allows; predicates with an ignored code are not called."""
    allowed = nodes.all(True)
    for fn in ssn.predicates:
        if fn.code not in ignored:
            allowed &= call_predicate(ssn, fn, task, job, nodes)
    return allowed


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
    for code, indexes in by_code.items():
        example_slots = tuple(rows[number].name for number in indexes[:EXAMPLE_SLOTS])
        yield ReasonCount(
            code, fn.plugin, len(indexes), _text(ssn, fn, task, job, Nodes(ssn.nodes, indexes)), example_slots
        )


def _by_code(
    ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, numbers: Indexes
) -> dict[str, Indexes]:
    """Return the refused nodes by reason code; by plugin name if the reason has no code."""
    by_code: dict[str, list[int]] = {}
    for number in numbers.tolist():
        reason = _reason_on(ssn, fn, task, job, number)
        has_code = isinstance(reason, Reason) and reason.code not in ("", FAILED)
        by_code.setdefault(reason.code if reason and has_code else fn.plugin, []).append(number)
    return {code: np.array(indexes) for code, indexes in by_code.items()}


def _text(ssn: SchedulingSession, fn: PredicateFn, task: Task, job: Job, refused: Nodes) -> str:
    try:
        if fn.summary is not None:
            return fn.summary(task, job, refused)
        assert refused.at is not None
        reason = fn.scalar(task, job, NodeState(ssn.nodes, int(refused.at[0])))
    except Exception as error:
        ssn.failures.record(fn.plugin, error)
        return f"refused by {fn.plugin}"
    return f"refused ({reason.text})" if isinstance(reason, Reason) else f"refused by {fn.plugin}"


@dataclass(frozen=True, slots=True)
class SmallerRequest:
    """A request that would fit now, and on how many nodes."""

    request: Units
    changed: tuple[str, ...]
    nodes: int


def smaller_request(ssn: SchedulingSession, task: Task, job: Job) -> SmallerRequest | None:
    """Return the smallest reduction that lets the task fit a node; None if a reduction does not help."""
    allowed = allowed_by_all(
        ssn, task, job, Nodes(ssn.nodes), ignored={RESOURCE_NAMES[column] for column in DIVISIBLE}
    )
    reducible = [column for column in DIVISIBLE if task.request[column]]
    if not allowed.any() or not reducible:
        return None
    requested: Ints = np.array([task.request[column] for column in reducible])
    left: Ints = np.minimum(ssn.nodes.free[:, reducible], requested)
    reduction: Floats = ((requested - left) / requested).sum(axis=1)
    reduction[~allowed | (left <= 0).any(axis=1)] = np.inf
    best = int(reduction.argmin())
    if not 0 < reduction[best] < np.inf:
        return None
    amounts = list(task.request)
    for column, amount in zip(reducible, left[best].tolist(), strict=True):
        amounts[column] = amount
    request = tuple(amounts)
    changed = tuple(RESOURCE_NAMES[column] for column in reducible if request[column] != task.request[column])
    fitting = allowed_by_all(ssn, replace(task, request=request), job, Nodes(ssn.nodes))
    return SmallerRequest(request, changed, int(fitting.sum())) if fitting.any() else None
