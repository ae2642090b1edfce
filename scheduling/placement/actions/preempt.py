"""Preempt jobs of lower priority in the same queue."""

from __future__ import annotations

from scheduling.placement.actions.victim_selection import evict_for_waiting
from scheduling.placement.framework.cycle import Cycle
from scheduling.placement.framework.model import Job


def run(cycle: Cycle) -> None:
    evict_for_waiting(
        cycle, cycle.ssn.preemptable, _has_lower_priority, "makes room for a session of higher priority:"
    )


def _has_lower_priority(job: Job, victim: Job) -> bool:
    return victim.queue == job.queue and victim.priority < job.priority
