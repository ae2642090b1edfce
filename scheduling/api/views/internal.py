"""API views for controllers: their slots, leases and boot tokens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from lcm.api.authentication import controller_token
from lcm.api.views.base import LcmViewSet, command
from lcm.domain.access import CONTROLLER, PUBLIC
from lcm.domain.errors import NotFound, StateConflict
from lcm.web.server.rate_limit import record_failure, seconds_until_retry
from scheduling.api import serializers as s
from scheduling.api.views.slots import ScopedSlots
from scheduling.models import LIVE, LaunchAttempt, ProcessLease, Slot
from scheduling.selectors.controller_assignments import live_slots
from scheduling.services.boot_tokens import redeem_boot_token
from scheduling.services.controller_leases import acquire_leases, release_leases
from scheduling.services.heartbeats import record_heartbeat
from scheduling.services.slots import record_interruption


@extend_schema(tags=["controllers"])
class InternalSlotViewSet(mixins.ListModelMixin, ScopedSlots):
    """The slots of a controller, and its reports about their workers."""

    filter_backends = ()
    sorts = ("created_at",)
    access = dict.fromkeys(("list", "heartbeat", "interruption"), CONTROLLER)

    def get_queryset(self) -> QuerySet[Slot]:
        token = controller_token(self.request)
        return live_slots(token.scope) if self.action == "list" else super().get_queryset()

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return s.ControllerSlotSerializer if self.action == "list" else s.SlotSerializer

    @command(s.HeartbeatSerializer, s.SlotSerializer)
    def heartbeat(self, slot: Slot, **data: Any) -> Slot:
        record_heartbeat(slot=slot, **data, actor=self.actor, now=self.now())
        return slot

    @command(s.InterruptionSerializer, s.SlotSerializer)
    def interruption(self, slot: Slot, **data: Any) -> Slot:
        """Record an interruption notice. Repeating a notice changes nothing: the first deadline stays."""
        noted = record_interruption(slot=slot, **data, now=self.now(), actor=self.actor)
        if not noted and slot.state not in LIVE:
            text = _("%(slot)s is %(state)s and has no worker that can be interrupted.")
            raise StateConflict(text % {"slot": slot, "state": slot.get_state_display().lower()})
        return slot


@extend_schema(tags=["controllers"])
class LeaseViewSet(LcmViewSet[ProcessLease]):
    """Leases on the caller's pools: one controller per pool or slot at a time."""

    queryset = ProcessLease.objects.none()
    serializer_class = s.PoolLeaseSerializer
    pagination_class = None
    access = dict.fromkeys(("hold", "release"), CONTROLLER)

    @extend_schema(request=s.LeaseRequestSerializer, responses=s.PoolLeaseSerializer(many=True))
    @action(detail=False, methods=["post"])
    def hold(self, request: Request) -> Response:
        """Take or renew the leases; call again well before they expire."""
        data = self.validated(s.LeaseRequestSerializer, request)
        leases = acquire_leases(token=controller_token(request), **data, now=self.now())
        return Response([asdict(lease) for lease in leases])

    @extend_schema(request=s.LeaseRequestSerializer, responses={204: None})
    @action(detail=False, methods=["post"])
    def release(self, request: Request) -> Response:
        holder = self.validated(s.LeaseRequestSerializer, request)["holder"]
        release_leases(token=controller_token(request), holder=holder, now=self.now())
        return Response(status=204)


@extend_schema(tags=["controllers"])
class BootViewSet(LcmViewSet[LaunchAttempt]):
    """Exchange the boot token in a worker's user data for a key. The token replaces authentication."""

    queryset = LaunchAttempt.objects.none()
    serializer_class = s.BootKeySerializer
    authentication_classes = ()
    permission_classes = ()
    access = {"create": PUBLIC}
    shown_once = ("key",)

    @extend_schema(request=s.BootTokenSerializer, responses={200: s.BootKeySerializer}, auth=[])
    def create(self, request: Request) -> Response:
        data = self.validated(s.BootTokenSerializer, request)
        try:
            boot_key = redeem_boot_token(**data, now=self.now())
        except NotFound as error:
            # Check the token before the rate limit: behind a proxy, failures of other clients must not block
            # a worker.
            wait = seconds_until_retry(request)
            record_failure(request)
            if wait is not None:
                raise Throttled(wait=wait) from error
            raise
        return Response(s.BootKeySerializer(boot_key).data)
