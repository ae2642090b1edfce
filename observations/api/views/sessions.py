"""API of session observations: controllers post them, users request and read them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import RequestDataTooBig
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.authentication import controller_token
from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import UnpagedViewSet, command
from lcm.api.views.sessions import visible_sessions
from lcm.domain.access import ADMIN, CONTROLLER, OPERATOR, VIEWER, VIEWER_OR_CONTROLLER
from lcm.domain.errors import NotFound, Unprocessable
from lcm.models import LabletSession
from observations.api import serializers as s
from observations.api.observation_schema import ObservationSerializer
from observations.models import ObservationRequest, SessionObservation
from observations.selectors.requests import last_request
from observations.selectors.sessions import session_evidence
from observations.services.observation_recorder import record_observation
from observations.services.requests import request_observation
from observations.services.session_exclusion import exclude_session, include_session


class ScopedObservations(UnpagedViewSet[LabletSession]):
    """Users see all sessions, a controller only the sessions in its scope."""

    queryset = LabletSession.objects.none()
    serializer_class = s.RecordedSerializer

    def get_queryset(self) -> QuerySet[LabletSession]:
        return visible_sessions(LabletSession.objects.all(), self.request)


@extend_schema(tags=["controllers"])
class InternalObservationViewSet(ScopedObservations):
    """Observations of running labs, posted by controllers."""

    access = {"resource_observations": CONTROLLER}

    @extend_schema(request=ObservationSerializer, responses=s.RecordedSerializer)
    @action(detail=True, methods=["post"], url_path="resource-observations")
    def resource_observations(self, request: Request, pk: str) -> Response:
        """Record an observation while the session is running, collecting or stopping.

        Duplicates count once.
        """
        try:
            body = request.data
        except RequestDataTooBig as error:
            raise Unprocessable(_("An observation must not exceed 5 MB.")) from error
        recorded = record_observation(
            session_id=_id(pk),
            scope=controller_token(request).scope,
            body=body,
            text=getattr(request, "json_text", ""),
            actor=self.actor,
            now=self.now(),
        )
        return Response(recorded.to_json())


@extend_schema(tags=["observations"])
class SessionObservationViewSet(ScopedObservations):
    """Observations of a session."""

    access = {
        "resource_observations": VIEWER_OR_CONTROLLER,
        "observe_resources": OPERATOR,
        "observe_state": VIEWER,
        "exclude": ADMIN,
        "include": ADMIN,
    }

    @extend_schema(responses=s.SessionEvidenceSerializer)
    @action(detail=True, url_path="resource-observations")
    def resource_observations(self, request: Request, pk: str) -> Response:
        return self.shown(_evidence(self.get_object()), s.SessionEvidenceSerializer)

    @command(None, s.RequestedObservationSerializer, status=202, url_path="observe-resources")
    def observe_resources(self, session: LabletSession) -> ObservationRequest:
        """Request an observation of a running session now.

        An open request is returned instead of a new one.
        """
        made = request_observation(session=session, actor=self.actor, now=self.now())
        made.state = made.state_at(self.now())
        return made

    @extend_schema(responses=s.RequestedObservationSerializer)
    @observe_resources.mapping.get
    def observe_state(self, request: Request, pk: str) -> Response:
        """Return the last observation request and its state."""
        session = self.get_object()
        last = last_request(session)
        if last is None:
            raise NotFound(_("No observation of %(session)s was requested.") % {"session": session})
        last.state = last.state_at(self.now())
        return Response(s.RequestedObservationSerializer(last).data)

    @command(ReasonSerializer, s.SessionEvidenceSerializer, url_path="resource-observations/exclude")
    def exclude(self, session: LabletSession, reason: str) -> dict[str, Any]:
        """Exclude the session from the evidence of its definition."""
        exclude_session(session=session, reason=reason, actor=self.actor, now=self.now())
        return _evidence(self.get_object())

    @command(ReasonSerializer, s.SessionEvidenceSerializer, url_path="resource-observations/include")
    def include(self, session: LabletSession, reason: str) -> dict[str, Any]:
        """Include an excluded session again."""
        include_session(session=session, reason=reason, actor=self.actor, now=self.now())
        return _evidence(self.get_object())


def _evidence(session: LabletSession) -> dict[str, Any]:
    row = SessionObservation.objects.filter(session=session).first()
    return session_evidence(session, row)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(_("Session not found.")) from error
