"""A waiting job with other amounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from lcm.allocation import divide
from scheduling.framework.amounts import RESOURCES, UNIT, amounts_of
from scheduling.framework.model import Job, Task


def with_requirements(job: Job, amounts: Mapping[str, Decimal]) -> Job:
    """What is not named stays. The tasks of a job that spreads divide the new amounts as they did the old."""
    columns = [[task.request[which] for task in job.tasks] for which in range(len(RESOURCES))]
    for which, name in enumerate(RESOURCES):
        if name in amounts:
            parts = divide(amounts[name], [Decimal(each) for each in columns[which]])
            columns[which] = [int(part * UNIT) for part in parts]
    rows = zip(*columns, strict=True)
    return replace(job, tasks=tuple(_resized(task, row) for task, row in zip(job.tasks, rows, strict=True)))


def _resized(task: Task, amounts: tuple[int, ...]) -> Task:
    values = {name: Decimal(amount) / UNIT for name, amount in zip(RESOURCES, amounts, strict=True)}
    return replace(task, request=amounts_of(values))
