"""Spread jobs: each task on its best node, all or none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from scheduling.placement.framework.candidates import Candidates
from scheduling.placement.framework.explanation import (
    PlacementExplanation,
    allowed_by_all,
    explain,
    failed_plugins,
)
from scheduling.placement.framework.model import Job, JobPart, Node, Task
from scheduling.placement.framework.nodes import Nodes, kind_of
from scheduling.placement.framework.statement import PlacementStatement

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

UNLIMITED = 1 << 40
# Kernels of a partial placement that the text names.
MAX_NAMED_KERNELS = 5


@dataclass
class GangAttempt:
    """The placements of a job's tasks by node, and the task that fits no node."""

    found: dict[str, JobPart] = field(default_factory=dict)
    # Scores by plugin, summed over all tasks.
    scores: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    unplaced: Candidates | None = None

    @property
    def parts(self) -> tuple[JobPart, ...]:
        return tuple(self.found.values())

    def add(self, part: JobPart) -> None:
        known = self.found.get(part.node)
        self.found[part.node] = known.joined(part) if known else part


def try_spread(
    ssn: SchedulingSession, job: Job, statement: PlacementStatement, *, keep_scores: bool = False
) -> GangAttempt:
    """Place task by task until one fits no node; the caller rolls the statement back."""
    attempt = GangAttempt()
    for task in ssn.tasks_in_order(job):
        candidates = ssn.candidates(task, job)
        number = candidates.best()
        if number is None:
            attempt.unplaced = candidates
            break
        if keep_scores:
            for plugin, score in candidates.score_by_plugin(number).items():
                attempt.scores[plugin] += score
        part = ssn.part_on(task, number)
        statement.allocate(job, part, leases=0)
        attempt.add(part)
    return attempt


def first_unplaceable_task(ssn: SchedulingSession, job: Job) -> Candidates | None:
    """Return the first task that fits no node even without the others."""
    for task in ssn.tasks_in_order(job):
        candidates = ssn.candidates(task, job)
        if candidates.best() is None:
            return candidates
    return None


def shape_of(ssn: SchedulingSession, job: Job) -> Hashable:
    """Return a key that is equal for jobs whose tasks have the same results."""
    return tuple(id(ssn.candidates(task, job)) for task in ssn.tasks_in_order(job))


@contextmanager
def longest_placeable_prefix(ssn: SchedulingSession, job: Job) -> Iterator[tuple[Candidates | None, int]]:
    """Return the task that fits no node, and how many tasks before it are placed meanwhile.

    The number is 0 if the task fits no node even without the others.
    """
    statement = ssn.statement()
    try:
        unplaced = first_unplaceable_task(ssn, job) or try_spread(ssn, job, statement).unplaced
        yield unplaced, len(statement.operations)
    finally:
        statement.discard()


def explain_spread(ssn: SchedulingSession, job: Job) -> PlacementExplanation:
    """Explain why a task fits no node: alone if that suffices, otherwise with the tasks before it placed."""
    with longest_placeable_prefix(ssn, job) as (unplaced, placed):
        if unplaced is None:
            explanation = PlacementExplanation(len(ssn.nodes), failures=failed_plugins(ssn))
        else:
            explanation = explain(ssn, unplaced.task, job)
    assumed = f"{placed} of its {len(job.tasks)} kernels placed" if placed else ""
    impossible = explanation.impossible or not could_hold(ssn, job)
    partial = best_partial(ssn, job) if impossible else ""
    return replace(explanation, placed=assumed, impossible=impossible, partial=partial)


def best_partial(ssn: SchedulingSession, job: Job) -> str:
    """Return the most tasks that can be placed together, with their nodes; empty if none can."""
    order = ssn.tasks_in_order(job)
    # Largest first leaves space for few tasks; smallest first often places more.
    placements = max((_trial_placements(ssn, job, tasks) for tasks in (order, order[::-1])), key=len)
    if not placements:
        return ""
    shown = ", ".join(f"{task.name or 'a kernel'} on {node}" for task, node in placements[:MAX_NAMED_KERNELS])
    others = f" and {len(placements) - MAX_NAMED_KERNELS} more" if len(placements) > MAX_NAMED_KERNELS else ""
    return f"Best partial placement: {len(placements)} of its {len(job.tasks)} kernels ({shown}{others})."


def _trial_placements(ssn: SchedulingSession, job: Job, tasks: Iterable[Task]) -> list[tuple[Task, str]]:
    """Return the tasks that can be placed one after the other, with their nodes; nothing stays placed."""
    statement = ssn.statement()
    placements = []
    for task in tasks:
        number = ssn.candidates(task, job).best()
        if number is not None:
            statement.allocate(job, ssn.part_on(task, number), leases=0)
            placements.append((task, ssn.nodes.rows[number].name))
    statement.discard()
    return placements


def could_hold(ssn: SchedulingSession, job: Job) -> bool:
    """Return whether the maximum number of empty nodes could hold all tasks.

    This is a bound: False is certain, True is not.
    """
    snapshot = ssn.snapshot
    kinds = Counter(kind_of(node) for node in snapshot.nodes)
    max_nodes = len(snapshot.nodes)
    new_kinds = {kind_of(node) for node in (*snapshot.coming, *snapshot.templates)}
    if new_kinds:
        if snapshot.max_nodes is None:
            return True
        max_nodes = max(max_nodes, snapshot.max_nodes)
        kinds.update(dict.fromkeys(new_kinds, max_nodes))
    rows = [(node, kinds[kind_of(node)]) for node in ssn.empty_node_kinds.rows]
    requested = [sum(amounts) for amounts in zip(*map(_requested, job.tasks), strict=True)]
    for column, amount in enumerate(requested):
        if _best_total(max_nodes, ((_capacity_of(node)[column], count) for node, count in rows)) < amount:
            return False
    return all(
        _best_total(max_nodes, _task_counts(ssn, task, job, rows)) >= count
        for task, count in Counter(replace(task, name="") for task in job.tasks).items()
    )


def _task_counts(
    ssn: SchedulingSession, task: Task, job: Job, rows: list[tuple[Node, int]]
) -> Iterable[tuple[int, int]]:
    """Return how many such tasks each kind of node holds, and how many such nodes there can be."""
    allowed = allowed_by_all(ssn, task, job, Nodes(ssn.empty_node_kinds)).tolist()
    return [
        (_task_count(task, node), count) for (node, count), fits in zip(rows, allowed, strict=True) if fits
    ]


def _task_count(task: Task, node: Node) -> int:
    pairs = zip(_capacity_of(node), _requested(task), strict=True)
    return min((capacity // requested for capacity, requested in pairs if requested), default=UNLIMITED)


def _capacity_of(node: Node) -> tuple[int, ...]:
    return (*node.capacity, node.ports)


def _requested(task: Task) -> tuple[int, ...]:
    return (*task.request, task.ports)


def _best_total(nodes_left: int, capacities: Iterable[tuple[int, int]]) -> int:
    """Return the total of the best nodes, up to a number of nodes."""
    total = 0
    for capacity, count in sorted(capacities, reverse=True):
        total += capacity * min(count, nodes_left)
        nodes_left -= min(count, nodes_left)
    return total
