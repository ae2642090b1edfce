"""API views of jobs: progress and retry."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema

from lcm.api import serializers as s
from lcm.api.views.base import ReadViewSet, command
from lcm.domain.access import OPERATOR, VIEWER
from lcm.models import Job
from lcm.selectors.jobs import jobs
from lcm.services.jobs import retry_job
from lcm.web.filters import JobFilter


@extend_schema(tags=["jobs"])
class JobViewSet(ReadViewSet[Job]):
    """Long-running jobs that people started; deleted after some days."""

    queryset = jobs()
    serializer_class = s.JobSerializer
    filterset_class = JobFilter
    access = {"list": VIEWER, "retrieve": VIEWER, "retry": OPERATOR}

    @command(None, s.JobSerializer)
    def retry(self, job: Job) -> Job:
        return retry_job(job=job, actor=self.actor, now=self.now())
