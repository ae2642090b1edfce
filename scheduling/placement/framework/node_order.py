"""A shared order of nodes for all shapes that rank them alike, updated as nodes fill."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import islice
from operator import ge
from typing import TYPE_CHECKING

import numpy as np

from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Nodes, NodeState
from scheduling.placement.framework.plugin_calls import FixedResults, call_score, call_score_on_node

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

# Nodes checked one by one before all are checked together.
CHECKED_SINGLY = 48
# With more changed nodes than this, sorting every node again is cheaper.
MAX_SINGLE_MOVES = 500
NO_SPACE = -np.inf
Entry = tuple[float, int]


class NodeOrder:
    """Nodes ranked for one task, shared by tasks whose scores differ from its scores by a constant.

    Nodes without space for the smallest of these tasks are left out, as most full nodes are.
    """

    def __init__(
        self, ssn: SchedulingSession, task: Task, job: Job, fixed: FixedResults, needs: Sequence[int]
    ) -> None:
        self._ssn, self._task, self._job, self._fixed = ssn, task, job, fixed
        # Scores that change with placements, without the invalid ones.
        self.active = [fn for fn in ssn.scores if not fn.fixed and not fn.excluded]
        self._excluded = ssn.scores_excluded
        # The score of each of them on every node.
        self.score_columns: list[list[float]] = [[] for _ in self.active]
        self._base: list[float] = fixed.scores.tolist()
        self._allowed: list[bool] = fixed.allowed.tolist()
        # The needs of its own task, and the smallest needs of any task here.
        self._own, self._least = list(needs), list(needs)
        self._seen = 0
        # The best node is last, where the list changes most; the negative index breaks ties by name.
        self._order: list[Entry] = []
        self._entries: list[Entry | None] = []
        self._rank()

    def admit(self, needs: Sequence[int]) -> None:
        """Share the order with another shape; a smaller one may fit where no task fitted before."""
        least = [min(pair) for pair in zip(self._least, needs, strict=True)]
        if least != self._least:
            self._least = least
            self._rank()

    def best_node(self, needs: Sequence[int]) -> int | None:
        """Return the index of the best node with enough space; of equal scores the first by name."""
        if self._seen != len(self._ssn.changed):
            self._update_changed()
        if self._excluded != self._ssn.scores_excluded:
            self._drop_disabled_scores()
        rows = self._ssn.nodes.left
        for _, negative in islice(reversed(self._order), CHECKED_SINGLY):
            if all(map(ge, rows[-negative], needs)):
                return -negative
        return self._first_of_all(needs) if len(self._order) > CHECKED_SINGLY else None

    def _first_of_all(self, needs: Sequence[int]) -> int | None:
        fits: Flags = (self._ssn.nodes.levels >= needs).all(axis=1) & self._fixed.allowed
        number = int(np.where(fits, self._scores, NO_SPACE).argmax())
        return number if fits[number] else None

    def _update_changed(self) -> None:
        changed, seen = self._ssn.changed, self._seen
        self._seen = len(changed)
        numbers = changed[seen:] if self._seen == seen + 1 else set(changed[seen:])
        if len(numbers) > MAX_SINGLE_MOVES:
            self._rank()
            return
        for number in numbers:
            self._move(number)

    def _move(self, number: int) -> None:
        """Move a node to its current position; remove it if it has no space left."""
        order, entry = self._order, self._entries[number]
        if entry is not None:
            del order[bisect_left(order, entry)]
            self._entries[number] = None
        if self._allowed[number] and all(map(ge, self._ssn.nodes.left[number], self._least)):
            score = self._score(number)
            self._scores[number] = score
            self._entries[number] = entry = (score, -number)
            insort(order, entry)

    def _score(self, number: int) -> float:
        total, state = self._base[number], NodeState(self._ssn.nodes, number)
        for fn, column in zip(self.active, self.score_columns, strict=True):
            column[number] = score = call_score_on_node(
                self._ssn, fn, self._task, self._job, state, shared=True
            )
            total += score
        return total

    def _rank(self) -> None:
        """Rank all nodes again."""
        nodes = Nodes(self._ssn.nodes)
        self._seen = len(self._ssn.changed)
        self._scores = scores = self._fixed.scores + 0.0
        unsuitable = ~((nodes.levels >= self._own).all(axis=1) & self._fixed.allowed)
        for fn, column in zip(self.active, self.score_columns, strict=True):
            column_scores = call_score(self._ssn, fn, self._task, self._job, nodes, unsuitable, shared=True)
            column[:] = column_scores.tolist()
            scores += column_scores
        fitting = np.flatnonzero((nodes.levels >= self._least).all(axis=1) & self._fixed.allowed)
        self._order = sorted(zip(scores[fitting].tolist(), (-fitting).tolist(), strict=True))
        self._entries = [None] * len(nodes)
        for entry in self._order:
            self._entries[-entry[1]] = entry

    def _drop_disabled_scores(self) -> None:
        """Continue without the scores that are disabled for the cycle."""
        self._excluded = self._ssn.scores_excluded
        self.active = [fn for fn in self.active if not fn.excluded]
        self.score_columns = [[] for _ in self.active]
        self._rank()
