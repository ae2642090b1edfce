"""API views of reservations: capacity without a session, kept alive by renewal."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import ReadViewSet
from lcm.domain.access import OPERATOR, VIEWER
from scheduling.api import serializers as s
from scheduling.filters import ReservationFilter
from scheduling.models import Reservation
from scheduling.selectors import capacity
from scheduling.services import reservations as services


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
        return capacity.reservations()

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
