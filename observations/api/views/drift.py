"""API of port drift."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import ReadViewSet
from lcm.domain.access import OPERATOR, VIEWER
from observations.api import serializers as s
from observations.filters import DriftFilter
from observations.models import DriftReview
from observations.selectors.drift import drift_reviews
from observations.services.drift_reviews import acknowledge_drift, reopen_drift


@extend_schema(tags=["observations"])
class DriftReviewViewSet(ReadViewSet[DriftReview]):
    """Differences between the allocated and the observed ports of sessions."""

    queryset = DriftReview.objects.none()
    serializer_class = s.DriftReviewSerializer
    filterset_class = DriftFilter
    sorts = ("-last_seen", "first_seen", "sessions")
    access = {"list": VIEWER, "retrieve": VIEWER, "acknowledge": OPERATOR, "reopen": OPERATOR}

    def get_queryset(self) -> QuerySet[DriftReview]:
        return drift_reviews()

    @extend_schema(request=s.AcknowledgeSerializer, responses=s.DriftReviewSerializer)
    @action(detail=True, methods=["post"])
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Accept a deviation for 30 days by default, at most 90. Conflicts cannot be accepted."""
        data = {"until": None, **self.validated(s.AcknowledgeSerializer, request)}
        review = acknowledge_drift(review=self.get_object(), **data, actor=self.actor, now=self.now())
        return Response(self.get_serializer(review).data)

    @extend_schema(request=ReasonSerializer, responses=s.DriftReviewSerializer)
    @action(detail=True, methods=["post"])
    def reopen(self, request: Request, pk: str) -> Response:
        """Withdraw an acknowledgement."""
        data = self.validated(ReasonSerializer, request)
        review = reopen_drift(review=self.get_object(), **data, actor=self.actor, now=self.now())
        return Response(self.get_serializer(review).data)
