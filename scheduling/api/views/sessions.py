"""API view that moves a waiting session to another pool."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.serializers import SessionDetailSerializer
from lcm.api.views.sessions import ScopedSessionViewSet
from lcm.domain.access import OPERATOR
from scheduling.api.serializers import SessionMoveSerializer
from scheduling.services.pool_transfer import move_to_pool


@extend_schema(tags=["sessions"])
class SessionMoveViewSet(ScopedSessionViewSet):
    """The pool that a session waits in."""

    access = {"move": OPERATOR}

    @extend_schema(request=SessionMoveSerializer, responses=SessionDetailSerializer)
    def move(self, request: Request, pk: str) -> Response:
        """Move a pending session to another pool; it keeps its age and priority."""
        data = self.validated(SessionMoveSerializer, request)
        session = self.get_object()
        return self.shown(move_to_pool(session=session, **data, actor=self.actor, now=self.now()))
