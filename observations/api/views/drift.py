"""API of port drift."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema

from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import ReadViewSet, command
from lcm.domain.access import OPERATOR, VIEWER
from observations.api import serializers as s
from observations.filters import DriftFilter
from observations.models import DriftReview
from observations.selectors.drift import drift_reviews
from observations.services.drift_reviews import acknowledge_drift, reopen_drift


@extend_schema(tags=["observations"])
class DriftReviewViewSet(ReadViewSet[DriftReview]):
    """Differences between the allocated and the observed ports of sessions."""

    queryset = drift_reviews()
    serializer_class = s.DriftReviewSerializer
    filterset_class = DriftFilter
    sorts = ("-last_seen", "first_seen", "sessions")
    access = {"list": VIEWER, "retrieve": VIEWER, "acknowledge": OPERATOR, "reopen": OPERATOR}

    @command(s.AcknowledgeSerializer, s.DriftReviewSerializer)
    def acknowledge(self, review: DriftReview, **data: Any) -> DriftReview:
        """Accept a deviation for 30 days by default, at most 90. Conflicts cannot be accepted."""
        return acknowledge_drift(review=review, **{"until": None, **data}, actor=self.actor, now=self.now())

    @command(ReasonSerializer, s.DriftReviewSerializer)
    def reopen(self, review: DriftReview, reason: str) -> DriftReview:
        """Withdraw an acknowledgement."""
        return reopen_drift(review=review, reason=reason, actor=self.actor, now=self.now())
