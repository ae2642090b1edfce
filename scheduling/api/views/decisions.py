"""API views of decisions and wait reasons."""

from __future__ import annotations

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.schema import ErrorSerializer
from lcm.api.views.base import LcmViewSet
from lcm.domain.access import VIEWER
from lcm.domain.errors import InvalidInput
from lcm.models import LabletSession
from scheduling.api import scheduler_serializers as s
from scheduling.filters import DecisionFilter
from scheduling.models import Decision
from scheduling.selectors import queue
from scheduling.selectors.wait_reasons import explain_session


@extend_schema(tags=["capacity"])
class DecisionViewSet(mixins.ListModelMixin, LcmViewSet[Decision]):
    """Decisions of scheduling cycles, one per change of outcome; limited by age and number."""

    queryset = queue.decisions()
    serializer_class = s.DecisionSerializer
    filterset_class = DecisionFilter
    sorts = ("-at", "position")
    access = {"list": VIEWER}


@extend_schema(tags=["sessions"])
class SessionExplainViewSet(LcmViewSet[LabletSession]):
    """Wait reasons of a session, computed by the scheduler's own code; 409 if the session is not waiting."""

    queryset = LabletSession.objects.only("id", "pool", "status")
    serializer_class = s.ExplanationSerializer
    access = {"explain": VIEWER}

    @extend_schema(
        parameters=[OpenApiParameter("slots", bool, description="With all reasons, slot by slot.")],
        responses={200: s.ExplanationSerializer, 409: ErrorSerializer},
    )
    def explain(self, request: Request, pk: str) -> Response:
        slots = request.query_params.get("slots", "")
        if slots not in ("", "true", "false"):
            raise InvalidInput({"slots": _("This must be true or false.")})
        found = explain_session(self.get_object(), now=self.now(), by_slot=slots == "true")
        return Response(s.ExplanationSerializer(found).data)
