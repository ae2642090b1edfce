"""Room for queues within their share, from queues over theirs."""

from __future__ import annotations

from scheduling.actions.displacing import displace
from scheduling.framework.cycle import Cycle
from scheduling.framework.model import Job


def run(cycle: Cycle) -> None:
    displace(cycle, cycle.ssn.reclaimable, _of_another_queue, "makes room for a project within its share:")


def _of_another_queue(job: Job, victim: Job) -> bool:
    return victim.queue != job.queue
