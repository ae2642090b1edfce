"""API views of slots, for users and for controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from lcm.api.authentication import token_of_controller
from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import Body, LcmViewSet, ReadViewSet, command
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
        token = token_of_controller(self.request)
        return slots_in_scope(token.scope) if token else slots()

    def shown(self, obj: Slot, serializer: Body, status: int = 200) -> Response:
        return super().shown(self.get_queryset().get(pk=obj.pk), serializer, status)


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
        "cancel_drain": OPERATOR,
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

    @command(ReasonSerializer, s.SlotSerializer)
    def cordon(self, slot: Slot, reason: str) -> Slot:
        return self._act(services.cordon_slot, slot, reason, cordoned=True)

    @command(ReasonSerializer, s.SlotSerializer)
    def uncordon(self, slot: Slot, reason: str) -> Slot:
        return self._act(services.cordon_slot, slot, reason, cordoned=False)

    @command(ReasonSerializer, s.SlotSerializer)
    def drain(self, slot: Slot, reason: str) -> Slot:
        return self._act(services.drain_slot, slot, reason)

    @command(ReasonSerializer, s.SlotSerializer, url_path="cancel-drain")
    def cancel_drain(self, slot: Slot, reason: str) -> Slot:
        """Make a draining slot ready again, while its worker responds and has no interruption notice."""
        return self._act(services.cancel_drain, slot, reason)

    @command(s.LabelsSerializer, s.SlotSerializer)
    def labels(self, slot: Slot, reason: str, labels: dict[str, str]) -> Slot:
        """Replace all labels of the worker; they last until the worker terminates."""
        return self._act(services.label_slot, slot, reason, labels=labels)

    @command(ReasonSerializer, s.SlotSerializer)
    def retry(self, slot: Slot, reason: str) -> Slot:
        return self._act(services.retry_slot, slot, reason)

    @command(ReasonSerializer, s.SlotSerializer)
    def terminate(self, slot: Slot, reason: str) -> Slot:
        return self._act(services.terminate_slot, slot, reason)

    def _act(self, service: Callable[..., Slot], slot: Slot, reason: str, **given: Any) -> Slot:
        return service(slot=slot, reason=reason, **given, actor=self.actor, now=self.now())
