"""API views of jobs: progress and retry."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api import serializers as s
from lcm.api.views.base import ReadViewSet
from lcm.domain.access import OPERATOR, VIEWER
from lcm.models import Job
from lcm.selectors.jobs import jobs
from lcm.services.jobs import retry_job
from lcm.web.filters import JobFilter


@extend_schema(tags=["jobs"])
class JobViewSet(ReadViewSet[Job]):
    """Long-running jobs that people started; deleted after some days."""

    queryset = Job.objects.none()
    serializer_class = s.JobSerializer
    filterset_class = JobFilter
    access = {"list": VIEWER, "retrieve": VIEWER, "retry": OPERATOR}

    def get_queryset(self) -> QuerySet[Job]:
        return jobs()

    @extend_schema(request=None, responses=s.JobSerializer)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        self.refuse_fields(request)
        job = retry_job(job=self.get_object(), actor=self.actor, now=self.now())
        return Response(s.JobSerializer(job).data)
