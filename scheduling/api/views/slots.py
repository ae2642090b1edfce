"""API views of slots, for users and for controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from lcm.api.authentication import ControllerPrincipal
from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import LcmViewSet, ReadViewSet
from lcm.domain.access import OPERATOR, VIEWER_OR_CONTROLLER
from scheduling.api import serializers as s
from scheduling.filters import SlotFilter
from scheduling.models import Slot
from scheduling.selectors.reservations import reservations_on
from scheduling.selectors.slots import attempts_of, ports_of, slots, slots_in_scope
from scheduling.services import slots as services

ATTEMPTS_SHOWN = 20


class ScopedSlots(LcmViewSet[Slot]):
    """All slots for users; for a controller the slots in its scope."""

    queryset = Slot.objects.none()
    serializer_class = s.SlotSerializer

    def get_queryset(self) -> QuerySet[Slot]:
        principal: Any = self.request.user
        if isinstance(principal, ControllerPrincipal):
            return slots_in_scope(principal.scope)
        return slots()

    def plain(self, slot: Slot) -> Response:
        return Response(s.SlotSerializer(self.get_queryset().get(pk=slot.pk)).data)


@extend_schema(tags=["capacity"])
class SlotViewSet(ReadViewSet[Slot], ScopedSlots):
    """Slots: places for workers."""

    filterset_class = SlotFilter
    sorts = ("-last_state_change", "number", "state", "lease_count", "created_at")
    access = {
        "list": VIEWER_OR_CONTROLLER,
        "retrieve": VIEWER_OR_CONTROLLER,
        "cordon": OPERATOR,
        "uncordon": OPERATOR,
        "drain": OPERATOR,
        "labels": OPERATOR,
        "retry": OPERATOR,
        "terminate": OPERATOR,
    }

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return s.SlotDetailSerializer if self.action == "retrieve" else s.SlotSerializer

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        slot = self.get_object()
        rest = {
            "reservations": reservations_on(slot).values_list("pk", flat=True),
            "ports": s.PortAllocationSerializer(ports_of(slot), many=True).data,
            "attempts": s.AttemptSerializer(attempts_of(slot, ATTEMPTS_SHOWN), many=True).data,
        }
        return Response({**s.SlotSerializer(slot).data, **rest})

    @extend_schema(request=ReasonSerializer, responses=s.SlotSerializer)
    @action(detail=True, methods=["post"])
    def cordon(self, request: Request, pk: str) -> Response:
        return self._act(request, services.cordon_slot, cordoned=True)

    @extend_schema(request=ReasonSerializer, responses=s.SlotSerializer)
    @action(detail=True, methods=["post"])
    def uncordon(self, request: Request, pk: str) -> Response:
        return self._act(request, services.cordon_slot, cordoned=False)

    @extend_schema(request=ReasonSerializer, responses=s.SlotSerializer)
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, pk: str) -> Response:
        return self._act(request, services.drain_slot)

    @extend_schema(request=s.LabelsSerializer, responses=s.SlotSerializer)
    @action(detail=True, methods=["post"])
    def labels(self, request: Request, pk: str) -> Response:
        """Replace all labels of the worker; they last until the worker terminates."""
        data = self.validated(s.LabelsSerializer, request)
        slot = self.get_object()
        return self.plain(services.label_slot(slot=slot, **data, actor=self.actor, now=self.now()))

    @extend_schema(request=ReasonSerializer, responses=s.SlotSerializer)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        return self._act(request, services.retry_slot)

    @extend_schema(request=ReasonSerializer, responses=s.SlotSerializer)
    @action(detail=True, methods=["post"])
    def terminate(self, request: Request, pk: str) -> Response:
        return self._act(request, services.terminate_slot)

    def _act(self, request: Request, work: Callable[..., Slot], **given: Any) -> Response:
        data = self.validated(ReasonSerializer, request)
        slot = self.get_object()
        return self.plain(work(slot=slot, **data, **given, actor=self.actor, now=self.now()))
