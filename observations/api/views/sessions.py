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

from lcm.api.authentication import ControllerPrincipal
from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import LcmViewSet
from lcm.domain.access import ADMIN, CONTROLLER, OPERATOR, VIEWER, VIEWER_OR_CONTROLLER
from lcm.domain.errors import NotFound, Unprocessable
from lcm.models import LabletSession
from lcm.selectors.controller_sessions import sessions_in_scope
from observations.api import serializers as s
from observations.api.observation_schema import ObservationSerializer
from observations.models import SessionObservation
from observations.selectors.requests import last_request
from observations.selectors.sessions import session_evidence
from observations.services.observation_recorder import record_observation
from observations.services.requests import request_observation
from observations.services.session_exclusion import exclude_session, include_session


class ScopedObservations(LcmViewSet[LabletSession]):
    """Users see all sessions, a controller only the sessions in its scope."""

    queryset = LabletSession.objects.none()
    serializer_class = s.RecordedSerializer
    pagination_class = None
    filter_backends = ()

    def get_queryset(self) -> QuerySet[LabletSession]:
        principal: Any = self.request.user
        rows = LabletSession.objects.all()
        return (
            sessions_in_scope(rows, principal.scope) if isinstance(principal, ControllerPrincipal) else rows
        )


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
        principal: Any = request.user
        recorded = record_observation(
            session_id=_id(pk),
            scope=principal.scope,
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
        return self._evidence(self.get_object())

    @extend_schema(request=None, responses={202: s.RequestedObservationSerializer})
    @action(detail=True, methods=["post"], url_path="observe-resources")
    def observe_resources(self, request: Request, pk: str) -> Response:
        """Request an observation of a running session now.

        An open request is returned instead of a new one.
        """
        self.refuse_fields(request)
        session = self.get_object()
        made = request_observation(session=session, actor=self.actor, now=self.now())
        made.state = made.state_at(self.now())
        return Response(s.RequestedObservationSerializer(made).data, status=202)

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

    @extend_schema(request=ReasonSerializer, responses=s.SessionEvidenceSerializer)
    @action(detail=True, methods=["post"], url_path="resource-observations/exclude")
    def exclude(self, request: Request, pk: str) -> Response:
        """Exclude the session from the evidence of its definition."""
        data = self.validated(ReasonSerializer, request)
        exclude_session(session=self.get_object(), **data, actor=self.actor, now=self.now())
        return self._evidence(self.get_object())

    @extend_schema(request=ReasonSerializer, responses=s.SessionEvidenceSerializer)
    @action(detail=True, methods=["post"], url_path="resource-observations/include")
    def include(self, request: Request, pk: str) -> Response:
        """Include an excluded session again."""
        data = self.validated(ReasonSerializer, request)
        include_session(session=self.get_object(), **data, actor=self.actor, now=self.now())
        return self._evidence(self.get_object())

    def _evidence(self, session: LabletSession) -> Response:
        row = SessionObservation.objects.filter(session=session).first()
        return Response(s.SessionEvidenceSerializer(session_evidence(session, row)).data)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound(_("Session not found.")) from error
