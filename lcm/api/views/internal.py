"""API views for controllers: sessions on their slots, status transitions and failures."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api import serializers as s
from lcm.api.authentication import controller_token
from lcm.api.views.base import Body, LcmViewSet, command
from lcm.domain.access import CONTROLLER
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.selectors import controller_sessions
from lcm.selectors.sessions import sessions
from lcm.services.session_reports import report_failure
from lcm.services.session_transitions import transition_session
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
        scope = controller_token(self.request).scope
        if self.action == "list":
            return controller_sessions.sessions_on_slots(scope)
        return controller_sessions.sessions_in_scope(sessions(), scope)

    @extend_schema(responses=s.ControllerSessionSerializer(many=True))
    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(controller_sessions.session_payloads(list(page or ())))

    @extend_schema(responses=s.ControllerSessionSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        return self.shown(self.get_object(), s.ControllerSessionSerializer)

    @command(s.TransitionRequestSerializer, s.ControllerSessionSerializer)
    def transitions(self, session: LabletSession, to_status: str, reason: str, **data: Any) -> LabletSession:
        return transition_session(
            session=_expected_session(session, data),
            to=SessionStatus(to_status),
            reason=reason,
            ends_at=data.get("ends_at"),
            actor=self.actor,
            now=self.now(),
        )

    @command(s.FailureSerializer, s.ControllerSessionSerializer)
    def failures(self, session: LabletSession, reason: str, lab_removed: bool, **data: Any) -> LabletSession:
        """Report a failure; LCM decides whether to retry, stop the remaining work or end the session."""
        return report_failure(
            session=_expected_session(session, data),
            reason=reason,
            lab_removed=lab_removed,
            actor=self.actor,
            now=self.now(),
        )

    def shown(self, obj: LabletSession, serializer: Body, status: int = 200) -> Response:
        fresh = LabletSession.objects.select_related("definition", "revision").get(pk=obj.pk)
        return Response(controller_sessions.session_payloads([fresh])[0])


def _expected_session(session: LabletSession, data: dict[str, Any]) -> LabletSession:
    """Return the session in the state that the controller expects; raise a conflict if it has changed."""
    session.status = data.get("from_status", session.status)
    session.attempt = data.get("attempt", session.attempt)
    return session
