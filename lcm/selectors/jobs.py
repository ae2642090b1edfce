"""Reading jobs."""

from __future__ import annotations

from django.db.models import QuerySet

from lcm.models import Job
from lcm.models.jobs import UNFINISHED


def jobs() -> QuerySet[Job]:
    return Job.objects.all()


def unfinished_jobs() -> QuerySet[Job]:
    return Job.objects.filter(state__in=UNFINISHED)
