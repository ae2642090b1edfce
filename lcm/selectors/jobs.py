"""Queries of jobs."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from lcm.models import Job, JobState
from lcm.models.jobs import UNFINISHED


@dataclass(frozen=True)
class JobCounts:
    unfinished: int
    failed: int
    # Completed jobs that rejected some or all items.
    with_rejected_items: int


def jobs() -> QuerySet[Job]:
    return Job.objects.all()


def unfinished_jobs() -> QuerySet[Job]:
    return Job.objects.filter(state__in=UNFINISHED)


def job_counts() -> JobCounts:
    """Return the number of unfinished, failed and partly rejected jobs."""
    return JobCounts(
        **Job.objects.aggregate(
            unfinished=Count("pk", filter=Q(state__in=UNFINISHED)),
            failed=Count("pk", filter=Q(state=JobState.FAILED)),
            with_rejected_items=Count("pk", filter=Q(state=JobState.DONE, rejected__gt=0)),
        )
    )
