"""API views of sessions."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from lcm.api import serializers as s
from lcm.api.authentication import token_of_controller
from lcm.api.views.base import Body, ReadViewSet, command
from lcm.domain.access import OPERATOR, VIEWER_OR_CONTROLLER
from lcm.models import LabletSession
from lcm.selectors import sessions as selectors
from lcm.selectors.controller_sessions import sessions_in_scope
from lcm.services import sessions as services
from lcm.services.session_priority import change_priority
from lcm.services.session_reports import record_arrival
from lcm.web.filters import SessionFilter


def visible_sessions(rows: QuerySet[LabletSession], request: Request) -> QuerySet[LabletSession]:
    """Return all sessions for people, for a controller the ones in its scope."""
    token = token_of_controller(request)
    return sessions_in_scope(rows, token.scope) if token else rows


class ScopedSessionViewSet(ReadViewSet[LabletSession]):
    """Base of session views: people see all sessions, a controller the ones in its scope."""

    queryset = LabletSession.objects.none()
    filterset_class = SessionFilter
    sorts = ("-created_at", "starts_at", "ends_at", "status", "priority")

    def get_queryset(self) -> QuerySet[LabletSession]:
        rows = visible_sessions(selectors.sessions(), self.request)
        return rows if self.action == "list" else rows.prefetch_related("kernels", "transitions")

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return s.SessionSerializer if self.action == "list" else s.SessionDetailSerializer

    def shown(self, obj: LabletSession, serializer: Body, status: int = 200) -> Response:
        """Return a session with its kernels and transitions, as stored."""
        return super().shown(self.get_queryset().get(pk=obj.pk), serializer, status)


@extend_schema(tags=["sessions"])
class SessionViewSet(ScopedSessionViewSet):
    """Lab sessions that people requested."""

    access = {
        "list": VIEWER_OR_CONTROLLER,
        "retrieve": VIEWER_OR_CONTROLLER,
        "create": OPERATOR,
        "cancel": OPERATOR,
        "extend": OPERATOR,
        "priority": OPERATOR,
        "arrive": OPERATOR,
    }

    @extend_schema(request=s.SessionRequestSerializer, responses={201: s.SessionDetailSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.SessionRequestSerializer, request)
        now = self.now()
        values = {"owner": request.user, "starts_at": now, **data}
        session = services.create_session(**values, actor=self.actor, now=now)
        return self.shown(session, s.SessionDetailSerializer, 201)

    @command(s.ReasonSerializer, s.SessionDetailSerializer)
    def cancel(self, session: LabletSession, reason: str) -> LabletSession:
        return services.cancel_session(session=session, reason=reason, actor=self.actor, now=self.now())

    @command(s.ExtendSerializer, s.SessionDetailSerializer)
    def extend(self, session: LabletSession, **data: Any) -> LabletSession:
        return services.extend_session(session=session, **data, actor=self.actor, now=self.now())

    @command(s.PrioritySerializer, s.SessionDetailSerializer)
    def priority(self, session: LabletSession, **data: Any) -> LabletSession:
        """Change the priority of a waiting session and its position in the queue."""
        return change_priority(session=session, **data, actor=self.actor, now=self.now())

    @command(None, s.SessionDetailSerializer)
    def arrive(self, session: LabletSession) -> LabletSession:
        """Report that the user has arrived; repeated calls have no effect."""
        return record_arrival(session=session, actor=self.actor, now=self.now())
