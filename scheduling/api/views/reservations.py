"""API views of reservations, and of the pool that a session waits in."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.serializers import ReasonSerializer, SessionDetailSerializer
from lcm.api.views.base import ReadViewSet
from lcm.api.views.sessions import ScopedSessionViewSet
from lcm.domain.access import OPERATOR, VIEWER
from scheduling.api import serializers as s
from scheduling.api.serializers import SessionMoveSerializer
from scheduling.filters import ReservationFilter
from scheduling.models import Reservation
from scheduling.selectors.reservations import reservations
from scheduling.services import reservations as services
from scheduling.services.pool_transfer import move_to_pool


@extend_schema(tags=["capacity"])
class ReservationViewSet(ReadViewSet[Reservation]):
    """Reservations of sessions and of other holders."""

    queryset = Reservation.objects.none()
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

    def get_queryset(self) -> QuerySet[Reservation]:
        return reservations()

    @extend_schema(request=s.ReservationRequestSerializer, responses={201: s.ReservationSerializer})
    def create(self, request: Request) -> Response:
        data = {
            "holder": request.user.get_username(),
            **self.validated(s.ReservationRequestSerializer, request),
        }
        return self._shown(services.create_reservation(**data, actor=self.actor, now=self.now()), status=201)

    @extend_schema(request=s.RenewSerializer, responses=s.ReservationSerializer)
    @action(detail=True, methods=["post"])
    def renew(self, request: Request, pk: str) -> Response:
        """Set the reservation to expire `ttl` seconds from now."""
        data = self.validated(s.RenewSerializer, request)
        return self._shown(services.renew_reservation(reservation=self.get_object(), **data, now=self.now()))

    @extend_schema(request=None, responses=s.ReservationSerializer)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        self.refuse_fields(request)
        return self._shown(
            services.release_reservation(reservation=self.get_object(), actor=self.actor, now=self.now())
        )

    @extend_schema(request=ReasonSerializer, responses=s.ReservationSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        data = self.validated(ReasonSerializer, request)
        return self._shown(
            services.cancel_reservation(
                reservation=self.get_object(), **data, actor=self.actor, now=self.now()
            )
        )

    def _shown(self, reservation: Reservation, status: int = 200) -> Response:
        fresh = self.get_queryset().get(pk=reservation.pk)
        return Response(s.ReservationSerializer(fresh).data, status=status)


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
