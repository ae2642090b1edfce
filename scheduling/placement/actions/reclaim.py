"""Reclaim space for queues within their share from queues over theirs."""

from __future__ import annotations

from scheduling.placement.actions.victim_selection import evict_for_waiting
from scheduling.placement.framework.cycle import Cycle
from scheduling.placement.framework.model import Job


def run(cycle: Cycle) -> None:
    evict_for_waiting(
        cycle, cycle.ssn.reclaimable, _is_in_another_queue, "makes room for a project within its share:"
    )


def _is_in_another_queue(job: Job, victim: Job) -> bool:
    return victim.queue != job.queue
