"""Reclaim and preempt: evict running jobs for waiting ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduling.placement.framework.candidates import Candidates
from scheduling.placement.framework.cycle import Cycle, Eviction, Verdict, VerdictOutcome
from scheduling.placement.framework.model import Job
from scheduling.placement.framework.session import SchedulingSession, VictimFilter
from scheduling.placement.framework.statement import PlacementStatement

VictimFilters = Sequence[tuple[str, VictimFilter]]


@dataclass(frozen=True)
class EvictionPlan:
    """The jobs to evict on one node."""

    number: int
    victims: tuple[Job, ...]

    @property
    def cost(self) -> tuple[int, int, float, int]:
        """Return the sort key: few victims, low priority, newest; then the order of nodes."""
        highest = max((victim.priority for victim in self.victims), default=0)
        oldest = min((victim.created for victim in self.victims), default=0.0)
        return len(self.victims), highest, -oldest, self.number


def reclaim(cycle: Cycle) -> None:
    """Reclaim space for queues within their share from queues over theirs."""

    def eligible(job: Job, victim: Job) -> bool:
        return victim.queue != job.queue

    reason = "makes room for a project within its share:"
    _evict_for_waiting(cycle, cycle.ssn.reclaimable, eligible, reason)


def preempt(cycle: Cycle) -> None:
    """Preempt jobs of lower priority in the same queue."""

    def eligible(job: Job, victim: Job) -> bool:
        return victim.queue == job.queue and victim.priority < job.priority

    reason = "makes room for a session of higher priority:"
    _evict_for_waiting(cycle, cycle.ssn.preemptable, eligible, reason)


def _evict_for_waiting(
    cycle: Cycle, filters: VictimFilters, eligible: Callable[[Job, Job], bool], reason: str
) -> None:
    """Find for each waiting job the cheapest node that evicting preemptible jobs would free, if all filters
    agree.

    Spread jobs are skipped: evicting for part of a gang does not help.
    """
    ssn = cycle.ssn
    if not filters:
        return
    on_node = _preemptible_by_node(cycle)
    for verdict in cycle.verdicts:
        if verdict.outcome is not VerdictOutcome.WAITING or verdict.unplaced is None or not on_node:
            continue
        job = verdict.job
        if job.is_spread:
            continue
        plan = _left_over(verdict.unplaced) or _cheapest(
            ssn, job, verdict.unplaced, on_node, filters, eligible
        )
        # Jobs behind it may have used up its queue's quota; then no job is evicted for it.
        if plan is not None and not ssn.refused(job):
            _apply_plan(cycle, verdict, plan, reason)
            evicted = {id(victim) for victim in plan.victims}
            on_node = {
                number: [victim for victim in jobs if id(victim) not in evicted]
                for number, jobs in on_node.items()
            }


def _preemptible_by_node(cycle: Cycle) -> dict[int, list[Job]]:
    """Return the preemptible jobs by node, lowest priority and newest first."""
    index = cycle.ssn.nodes.index
    leaving = {id(eviction.victim) for eviction in cycle.evictions}
    by_node: dict[int, list[Job]] = {}
    for job in sorted(cycle.ssn.snapshot.running, key=lambda job: (job.priority, -job.created, job.id)):
        if job.preemptible and id(job) not in leaving and not job.leaving:
            for part in job.parts:
                if part.node in index:
                    by_node.setdefault(index[part.node], []).append(job)
    return by_node


def _left_over(candidates: Candidates) -> EvictionPlan | None:
    """Return a node with space left by earlier evictions, without further victims."""
    number = candidates.best()
    return None if number is None else EvictionPlan(number, ())


def _cheapest(
    ssn: SchedulingSession,
    job: Job,
    candidates: Candidates,
    on_node: dict[int, list[Job]],
    filters: VictimFilters,
    eligible: Callable[[Job, Job], bool],
) -> EvictionPlan | None:
    allowed = candidates.allowed_if_empty()
    best: EvictionPlan | None = None
    for number, jobs in sorted(on_node.items()):
        victims = [victim for victim in jobs if eligible(job, victim)]
        if victims and allowed[number]:
            plan = _plan_eviction(ssn, job, candidates, number, victims, filters)
            if plan is not None and (best is None or plan.cost < best.cost):
                best = plan
    return best


def _plan_eviction(
    ssn: SchedulingSession,
    job: Job,
    candidates: Candidates,
    number: int,
    victims_in_order: Sequence[Job],
    filters: VictimFilters,
) -> EvictionPlan | None:
    """Simulate one node: add victims until the job fits, then spare the unnecessary ones."""
    statement = ssn.statement()
    victims: list[Job] = []
    for victim in victims_in_order:
        if not ssn.victims(job, filters, [victim]):
            continue
        statement.evict(victim)
        victims.append(victim)
        if candidates.allows(number):
            break
    fits = candidates.allows(number)
    statement.discard()
    return EvictionPlan(number, _without_unneeded_victims(ssn, candidates, number, victims)) if fits else None


def _without_unneeded_victims(
    ssn: SchedulingSession, candidates: Candidates, number: int, victims: list[Job]
) -> tuple[Job, ...]:
    """Return the victims without the unnecessary ones; the most important are spared first."""
    needed = list(victims)
    for spared in reversed(victims[:-1]):
        without = [victim for victim in needed if victim is not spared]
        statement = _evicting(ssn, without)
        if candidates.allows(number):
            needed = without
        statement.discard()
    return tuple(needed)


def _evicting(ssn: SchedulingSession, victims: Sequence[Job]) -> PlacementStatement:
    statement = ssn.statement()
    for victim in victims:
        statement.evict(victim)
    return statement


def _apply_plan(cycle: Cycle, verdict: Verdict, plan: EvictionPlan, reason: str) -> None:
    """Evict the victims and hold their space for the job."""
    ssn, job = cycle.ssn, verdict.job
    statement = _evicting(ssn, plan.victims)
    part = ssn.part_on(job.whole, plan.number)
    statement.allocate(job, part)
    statement.commit()
    verdict.outcome, verdict.parts, verdict.unplaced = VerdictOutcome.HELD, (part,), None
    cycle.evictions.extend(Eviction(victim, job, f"{reason} {job.label}") for victim in plan.victims)
