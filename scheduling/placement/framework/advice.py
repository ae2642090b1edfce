"""Suggestion of a smaller request for a job that fits no node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scheduling.placement.framework.amounts import CPU, MEMORY, RESOURCES, STORAGE, Amounts
from scheduling.placement.framework.explanation import allowed_by_all
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Floats, Ints, Nodes
from scheduling.placement.framework.plugin_calls import call_predicate

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

# Resources that can be reduced; half a GPU is a different request.
DIVISIBLE = (CPU, MEMORY, STORAGE)


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
