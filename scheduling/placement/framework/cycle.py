"""One cycle: open a session over a snapshot, run the actions, close it. The result is a plain value."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from scheduling.placement.framework.candidates import Candidates
from scheduling.placement.framework.configuration import Configuration
from scheduling.placement.framework.explanation import PlacementExplanation, explain
from scheduling.placement.framework.gangs import explain_spread, shape_of
from scheduling.placement.framework.garbage_collector import garbage_collector_paused
from scheduling.placement.framework.model import Job, JobPart, Snapshot
from scheduling.placement.framework.session import SchedulingSession

MAX_SUMMARY_LENGTH = 60


class VerdictOutcome(StrEnum):
    PLACED = "placed"
    WAITING = "waiting"
    HELD = "held"
    REFUSED = "refused"
    IMPOSSIBLE = "impossible"


@dataclass(slots=True)
class Verdict:
    """The decision of a cycle about one job."""

    job: Job
    position: int
    outcome: VerdictOutcome
    parts: tuple[JobPart, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    # Shared by all jobs of one shape; filled in when the cycle ends.
    why: PlacementExplanation | None = None
    # The task that fits no node, and the candidates of its shape.
    unplaced: Candidates | None = None

    @property
    def summary(self) -> str:
        """Return the outcome and main reason; while it is unchanged, nothing new is recorded.

        A plugin failure and its recovery both count as a change.
        """
        if self.why is None:
            return self.outcome.value
        mark = "!" if self.why.failures else ""
        return f"{self.outcome}{mark}:{self.why.main_reason}"[:MAX_SUMMARY_LENGTH]


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running job to evict, the job it makes room for, and the reason."""

    victim: Job
    for_job: Job
    reason: str


@dataclass
class Cycle:
    """The results of a cycle's actions."""

    ssn: SchedulingSession
    # Keep scores by plugin, for pages that show decisions.
    keep_scores: bool = True
    verdicts: list[Verdict] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)

    @property
    def placed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome is VerdictOutcome.PLACED]

    @property
    def unmet(self) -> list[Job]:
        """Return the unplaced jobs that a new node could help."""
        return [verdict.job for verdict in self.verdicts if verdict.outcome is VerdictOutcome.WAITING]

    def explain_waiting(self) -> None:
        """Explain the jobs that fit no node, once per shape."""
        by_shape: dict[Hashable, PlacementExplanation] = {}
        for verdict in self.verdicts:
            if verdict.unplaced is None:
                continue
            job, unplaced = verdict.job, verdict.unplaced
            shape = shape_of(self.ssn, job) if job.is_spread else id(unplaced)
            explanation = by_shape.get(shape)
            if explanation is None:
                explanation = (
                    explain_spread(self.ssn, job)
                    if job.is_spread
                    else explain(self.ssn, unplaced.task, unplaced.job)
                )
                by_shape[shape] = explanation
            verdict.why = explanation
            if explanation.impossible and verdict.outcome is VerdictOutcome.WAITING:
                verdict.outcome = VerdictOutcome.IMPOSSIBLE


def run_cycle(snapshot: Snapshot, configuration: Configuration, *, keep_scores: bool = True) -> Cycle:
    """Run a cycle. The tick, explanations and dry runs all use it; it has no side effects."""
    from scheduling.placement.actions import ACTIONS  # which import this module

    with garbage_collector_paused():
        ssn = SchedulingSession(snapshot)
        ssn.open(configuration.plugins_for_cycle())
        cycle = Cycle(ssn, keep_scores)
        for name in configuration.actions:
            ACTIONS[name](cycle)
        cycle.explain_waiting()
        ssn.close()
    return cycle
