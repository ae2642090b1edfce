"""API views of reservations, and of the pool that a session waits in."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.serializers import ReasonSerializer, SessionDetailSerializer
from lcm.api.views.base import Body, ReadViewSet, command
from lcm.api.views.sessions import ScopedSessionViewSet
from lcm.domain.access import OPERATOR, VIEWER, VIEWER_OR_CONTROLLER
from scheduling.api import serializers as s
from scheduling.api.serializers import SessionMoveSerializer
from scheduling.filters import ReservationFilter
from scheduling.models import Reservation
from scheduling.selectors.reservations import reservations
from scheduling.selectors.session_access import session_access
from scheduling.services import reservations as services
from scheduling.services.pool_transfer import move_to_pool


@extend_schema(tags=["capacity"])
class ReservationViewSet(ReadViewSet[Reservation]):
    """Reservations of sessions and of other holders."""

    queryset = reservations()
    serializer_class = s.ReservationSerializer
    filterset_class = ReservationFilter
    sorts = ("-created_at", "phase", "priority")
    access = {
        "list": VIEWER,
        "retrieve": VIEWER,
        "create": OPERATOR,
        "renew": OPERATOR,
        "release": OPERATOR,
        "cancel": OPERATOR,
    }

    @extend_schema(request=s.ReservationRequestSerializer, responses={201: s.ReservationSerializer})
    def create(self, request: Request) -> Response:
        data = {
            "holder": request.user.get_username(),
            **self.validated(s.ReservationRequestSerializer, request),
        }
        made = services.create_reservation(**data, actor=self.actor, now=self.now())
        return self.shown(made, s.ReservationSerializer, 201)

    @command(s.RenewSerializer, s.ReservationSerializer)
    def renew(self, reservation: Reservation, **data: Any) -> Reservation:
        """Set the reservation to expire `ttl` seconds from now."""
        return services.renew_reservation(reservation=reservation, **data, now=self.now())

    @command(None, s.ReservationSerializer)
    def release(self, reservation: Reservation) -> Reservation:
        return services.release_reservation(reservation=reservation, actor=self.actor, now=self.now())

    @command(ReasonSerializer, s.ReservationSerializer)
    def cancel(self, reservation: Reservation, reason: str) -> Reservation:
        return services.cancel_reservation(
            reservation=reservation, reason=reason, actor=self.actor, now=self.now()
        )

    def shown(self, obj: Reservation, serializer: Body, status: int = 200) -> Response:
        return super().shown(self.get_queryset().get(pk=obj.pk), serializer, status)


@extend_schema(tags=["sessions"])
class SessionMoveViewSet(ScopedSessionViewSet):
    """The pool that a session waits in."""

    access = {"move": OPERATOR}

    @extend_schema(request=SessionMoveSerializer, responses=SessionDetailSerializer)
    def move(self, request: Request, pk: str) -> Response:
        """Move a pending session to another pool; it keeps its age and priority."""
        data = self.validated(SessionMoveSerializer, request)
        session = self.get_object()
        moved = move_to_pool(session=session, **data, actor=self.actor, now=self.now())
        return self.shown(moved, SessionDetailSerializer)


@extend_schema(tags=["sessions"])
class SessionAccessViewSet(ScopedSessionViewSet):
    """How to connect to a session."""

    access = {"sheet": VIEWER_OR_CONTROLLER}

    @extend_schema(responses=s.AccessSheetSerializer)
    def sheet(self, request: Request, pk: str) -> Response:
        """Return the addresses of the session's nodes and consoles."""
        session = self.get_object()
        sheet = session_access(session, list(session.kernels.all()), now=self.now())
        return Response(s.AccessSheetSerializer(sheet).data)
