"""One cycle: open a session over a snapshot, run the actions, close it; what came of it is a plain value."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module

from scheduling.placement.framework.candidates import Candidates
from scheduling.placement.framework.configuration import Configuration
from scheduling.placement.framework.explanation import Explanation, explain
from scheduling.placement.framework.gangs import explain_apart, shape_of
from scheduling.placement.framework.garbage_collector import without_collecting
from scheduling.placement.framework.model import Job, Part, Snapshot
from scheduling.placement.framework.session import SchedulingSession

LONGEST_SUMMARY = 60


class Outcome(StrEnum):
    PLACED = "placed"
    WAITING = "waiting"
    HELD = "held"
    REFUSED = "refused"
    IMPOSSIBLE = "impossible"


@dataclass(slots=True)
class Verdict:
    """What a cycle decided about one job."""

    job: Job
    position: int
    outcome: Outcome
    parts: tuple[Part, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    # Shared by all jobs of one shape; filled in when the cycle ends.
    why: Explanation | None = None
    # The task that found no node, and where those like it can go.
    stuck: Candidates | None = None

    @property
    def summary(self) -> str:
        """The outcome and the main reason; as long as it stays, nothing new is to be told.

        A plugin that failed is news, and so is that it works again.
        """
        if self.why is None:
            return self.outcome.value
        mark = "!" if self.why.failures else ""
        return f"{self.outcome}{mark}:{self.why.dominant}"[:LONGEST_SUMMARY]


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running job that has to make room, for whom and why."""

    victim: Job
    for_job: Job
    reason: str


@dataclass
class Cycle:
    """What the actions of a cycle came to."""

    ssn: SchedulingSession
    # Scores by plugin are kept for whoever shows decisions.
    keep_scores: bool = True
    verdicts: list[Verdict] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)

    @property
    def placed(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome is Outcome.PLACED]

    @property
    def unmet(self) -> list[Job]:
        """Jobs that a new node could help."""
        return [verdict.job for verdict in self.verdicts if verdict.outcome is Outcome.WAITING]

    def put_into_words(self) -> None:
        """The reasons of those that found no node: once for all of a shape."""
        found: dict[Hashable, Explanation] = {}
        for verdict in self.verdicts:
            if verdict.stuck is None:
                continue
            job, stuck = verdict.job, verdict.stuck
            shape = shape_of(self.ssn, job) if job.apart else id(stuck)
            why = found.get(shape)
            if why is None:
                why = explain_apart(self.ssn, job) if job.apart else explain(self.ssn, stuck.task, stuck.job)
                found[shape] = why
            verdict.why = why
            if why.impossible and verdict.outcome is Outcome.WAITING:
                verdict.outcome = Outcome.IMPOSSIBLE


def run_cycle(snapshot: Snapshot, configuration: Configuration, *, keep_scores: bool = True) -> Cycle:
    """The same code decides, explains and rehearses: nothing outside the cycle changes."""
    with without_collecting():
        ssn = SchedulingSession(snapshot)
        ssn.open(configuration.opened())
        cycle = Cycle(ssn, keep_scores)
        for name in configuration.actions:
            import_module(f"scheduling.placement.actions.{name}").run(cycle)
        cycle.put_into_words()
        ssn.close()
    return cycle
