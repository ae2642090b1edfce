"""API views of sessions."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from lcm.api import serializers as s
from lcm.api.authentication import ControllerPrincipal
from lcm.api.views.base import ReadViewSet
from lcm.domain.access import OPERATOR, VIEWER_OR_CONTROLLER
from lcm.models import LabletSession
from lcm.selectors import sessions as selectors
from lcm.selectors.controller_sessions import sessions_in_scope
from lcm.services import sessions as services
from lcm.services.session_reports import record_arrival
from lcm.web.filters import SessionFilter


class ScopedSessionViewSet(ReadViewSet[LabletSession]):
    """Base of session views: people see all sessions, a controller the ones in its scope."""

    queryset = LabletSession.objects.none()
    filterset_class = SessionFilter
    sorts = ("-created_at", "starts_at", "ends_at", "status", "priority")

    def get_queryset(self) -> QuerySet[LabletSession]:
        principal: Any = self.request.user
        rows = (
            sessions_in_scope(selectors.sessions(), principal.scope)
            if isinstance(principal, ControllerPrincipal)
            else selectors.sessions()
        )
        return rows if self.action == "list" else rows.prefetch_related("kernels", "transitions")

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return s.SessionSerializer if self.action == "list" else s.SessionDetailSerializer

    def shown(self, session: LabletSession, status: int = 200) -> Response:
        fresh = self.get_queryset().get(pk=session.pk)
        return Response(s.SessionDetailSerializer(fresh).data, status=status)


@extend_schema(tags=["sessions"])
class SessionViewSet(ScopedSessionViewSet):
    """Lab sessions that people requested."""

    access = {
        "list": VIEWER_OR_CONTROLLER,
        "retrieve": VIEWER_OR_CONTROLLER,
        "create": OPERATOR,
        "cancel": OPERATOR,
        "extend": OPERATOR,
        "arrive": OPERATOR,
    }

    @extend_schema(request=s.SessionRequestSerializer, responses={201: s.SessionDetailSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.SessionRequestSerializer, request)
        now = self.now()
        values = {"owner": request.user, "starts_at": now, **data}
        session = services.create_session(**values, actor=self.actor, now=now)
        return self.shown(session, status=201)

    @extend_schema(request=s.ReasonSerializer, responses=s.SessionDetailSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        data = self.validated(s.ReasonSerializer, request)
        session = services.cancel_session(
            session=self.get_object(), reason=data["reason"], actor=self.actor, now=self.now()
        )
        return self.shown(session)

    @extend_schema(request=s.ExtendSerializer, responses=s.SessionDetailSerializer)
    @action(detail=True, methods=["post"])
    def extend(self, request: Request, pk: str) -> Response:
        data = self.validated(s.ExtendSerializer, request)
        session = services.extend_session(session=self.get_object(), **data, actor=self.actor, now=self.now())
        return self.shown(session)

    @extend_schema(request=None, responses=s.SessionDetailSerializer)
    @action(detail=True, methods=["post"])
    def arrive(self, request: Request, pk: str) -> Response:
        """Report that the user has arrived; repeated calls have no effect."""
        self.refuse_fields(request)
        session = record_arrival(session=self.get_object(), actor=self.actor, now=self.now())
        return self.shown(session)
