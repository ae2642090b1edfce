"""API views for controllers: sessions on their slots, status transitions and failures."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api import serializers as s
from lcm.api.views.base import LcmViewSet
from lcm.domain.access import CONTROLLER
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.selectors import controller_sessions
from lcm.selectors.sessions import sessions
from lcm.services.session_reports import report_failure
from lcm.services.sessions import transition_session
from lcm.web.filters import ControllerSessionFilter


@extend_schema(tags=["controllers"])
class InternalSessionViewSet(LcmViewSet[LabletSession]):
    """Sessions on a controller's slots. Sessions outside its scope are not found."""

    queryset = LabletSession.objects.none()
    serializer_class = s.ControllerSessionSerializer
    filterset_class = ControllerSessionFilter
    sorts = ("created_at", "starts_at", "ends_at", "status", "priority")
    access = dict.fromkeys(("list", "retrieve", "transitions", "failures"), CONTROLLER)

    def get_queryset(self) -> QuerySet[LabletSession]:
        principal: Any = self.request.user
        if self.action == "list":
            return controller_sessions.sessions_on_slots(principal.scope)
        return controller_sessions.sessions_in_scope(sessions(), principal.scope)

    @extend_schema(responses=s.ControllerSessionSerializer(many=True))
    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(controller_sessions.session_payloads(list(page or ())))

    @extend_schema(responses=s.ControllerSessionSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        return self._shown(self.get_object())

    @extend_schema(request=s.TransitionRequestSerializer, responses=s.ControllerSessionSerializer)
    @action(detail=True, methods=["post"])
    def transitions(self, request: Request, pk: str) -> Response:
        data = self.validated(s.TransitionRequestSerializer, request)
        session = transition_session(
            session=self._expected_session(data),
            to=SessionStatus(data["to_status"]),
            reason=data["reason"],
            ends_at=data.get("ends_at"),
            actor=self.actor,
            now=self.now(),
        )
        return self._shown(session)

    @extend_schema(request=s.FailureSerializer, responses=s.ControllerSessionSerializer)
    @action(detail=True, methods=["post"])
    def failures(self, request: Request, pk: str) -> Response:
        """Report a failure; LCM decides whether to retry, stop the remaining work or end the session."""
        data = self.validated(s.FailureSerializer, request)
        session = report_failure(
            session=self._expected_session(data),
            reason=data["reason"],
            lab_removed=data["lab_removed"],
            actor=self.actor,
            now=self.now(),
        )
        return self._shown(session)

    def _expected_session(self, data: dict[str, Any]) -> LabletSession:
        """Return the session in the state that the controller expects; raise a conflict if it has changed."""
        session = self.get_object()
        session.status = data.get("from_status", session.status)
        session.attempt = data.get("attempt", session.attempt)
        return session

    def _shown(self, session: LabletSession) -> Response:
        fresh = LabletSession.objects.select_related("definition", "revision").get(pk=session.pk)
        return Response(controller_sessions.session_payloads([fresh])[0])
