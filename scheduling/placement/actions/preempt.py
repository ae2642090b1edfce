"""Room for more important jobs, from less important ones of the same queue."""

from __future__ import annotations

from scheduling.placement.actions.victim_selection import displace
from scheduling.placement.framework.cycle import Cycle
from scheduling.placement.framework.model import Job


def run(cycle: Cycle) -> None:
    displace(cycle, cycle.ssn.preemptable, _less_important, "makes room for a session of higher priority:")


def _less_important(job: Job, victim: Job) -> bool:
    return victim.queue == job.queue and victim.priority < job.priority
