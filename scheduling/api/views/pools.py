"""Pools and their ticks over the API."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.access import ADMIN, VIEWER
from lcm.api.views.base import LcmViewSet, ReadViewSet
from scheduling.api import serializers as s
from scheduling.filters import PoolFilter, TickFilter
from scheduling.models import Pool, TickRun
from scheduling.selectors import capacity
from scheduling.services.pools import create_pool, update_pool


@extend_schema(tags=["capacity"])
class PoolViewSet(ReadViewSet[Pool]):
    """Kinds of workers, each with a policy."""

    queryset = Pool.objects.none()
    serializer_class = s.PoolSerializer
    filterset_class = PoolFilter
    sorts = ("name", "system", "runtime", "max_slots", "created_at")
    access = {"list": VIEWER, "retrieve": VIEWER, "create": ADMIN, "partial_update": ADMIN}

    def get_queryset(self) -> QuerySet[Pool]:
        return capacity.pools(self.now())

    @extend_schema(request=s.PoolRequestSerializer, responses={201: s.PoolSerializer})
    def create(self, request: Request) -> Response:
        pool = create_pool(**self.taken(s.PoolRequestSerializer, request), actor=self.actor)
        return self._shown(pool, status=201)

    @extend_schema(request=s.PoolChangeSerializer, responses=s.PoolSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        changes = self.given(s.PoolChangeSerializer, request)
        return self._shown(update_pool(pool=self.get_object(), actor=self.actor, **changes))

    def _shown(self, pool: Pool, status: int = 200) -> Response:
        fresh = self.get_queryset().get(pk=pool.pk)
        return Response(s.PoolSerializer(fresh).data, status=status)


@extend_schema(tags=["capacity"])
class TickViewSet(mixins.ListModelMixin, LcmViewSet[TickRun]):
    """What the last ticks did; kept for two days."""

    queryset = TickRun.objects.none()
    serializer_class = s.TickSerializer
    filterset_class = TickFilter
    sorts = ("-started_at", "duration_ms")
    access = {"list": VIEWER}

    def get_queryset(self) -> QuerySet[TickRun]:
        return capacity.ticks()
