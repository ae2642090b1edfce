"""API views of pools and their ticks."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.views.base import Body, ReadViewSet, change, deletion
from lcm.domain.access import ADMIN, OPERATOR, VIEWER
from scheduling.api import serializers as s
from scheduling.api.scheduler_serializers import (
    DecisionSerializer,
    DryRunResultSerializer,
    DryRunSerializer,
)
from scheduling.filters import PoolFilter, TickFilter
from scheduling.models import Pool, TickRun
from scheduling.selectors.dry_run import DryRunInput, Requirement, run_dry_run
from scheduling.selectors.pools import pools, ticks
from scheduling.selectors.queue import decisions
from scheduling.selectors.unknown_queues import unknown_queues, unknown_queues_text
from scheduling.services.pools import create_pool, delete_pool, update_pool


@extend_schema(tags=["capacity"])
class PoolViewSet(ReadViewSet[Pool]):
    """Pools: kinds of workers, each with a policy."""

    queryset = Pool.objects.none()
    serializer_class = s.PoolSerializer
    filterset_class = PoolFilter
    sorts = ("name", "system", "runtime", "max_slots", "created_at")
    access = {
        "list": VIEWER,
        "retrieve": VIEWER,
        "create": ADMIN,
        "partial_update": ADMIN,
        "destroy": ADMIN,
        "dry_run": OPERATOR,
    }

    def get_queryset(self) -> QuerySet[Pool]:
        return pools(self.now())

    @extend_schema(request=s.PoolRequestSerializer, responses={201: s.SavedPoolSerializer})
    def create(self, request: Request) -> Response:
        pool = create_pool(**self.validated(s.PoolRequestSerializer, request), actor=self.actor)
        return self.shown(pool, s.SavedPoolSerializer, 201)

    @change(s.PoolChangeSerializer, s.SavedPoolSerializer)
    def partial_update(self, pool: Pool, **changes: Any) -> Pool:
        return update_pool(pool=pool, actor=self.actor, **changes)

    @deletion
    def destroy(self, pool: Pool, reason: str) -> None:
        """Delete an empty pool: no slot has a worker, and no session or reservation uses it."""
        delete_pool(pool=pool, reason=reason, actor=self.actor, now=self.now())

    @extend_schema(request=DryRunSerializer, responses=DryRunResultSerializer)
    @action(detail=True, methods=["post"], url_path="dry-run")
    def dry_run(self, request: Request, pk: str) -> Response:
        """Simulate the next scheduling cycle with changed input; nothing is written."""
        data = self.validated(DryRunSerializer, request)
        requirements = [
            Requirement(each["resources"], each.get("definition"), each.get("session"))
            for each in data.pop("requirements")
        ]
        pool = get_object_or_404(Pool, pk=pk)
        found = run_dry_run(pool, DryRunInput(requirements=requirements, **data), now=self.now())
        return Response(DryRunResultSerializer(found).data)

    def shown(self, obj: Pool, serializer: Body, status: int = 200) -> Response:
        fresh = self.get_queryset().get(pk=obj.pk)
        warning = unknown_queues_text(unknown_queues(fresh.scheduler))
        saved = {**s.PoolSerializer(fresh).data, "warnings": [warning] if warning else []}
        return Response(saved, status=status)


@extend_schema(tags=["capacity"])
class TickViewSet(ReadViewSet[TickRun]):
    """Recent ticks; kept for two days."""

    queryset = ticks()
    serializer_class = s.TickSerializer
    filterset_class = TickFilter
    sorts = ("-started_at", "duration_ms")
    access = {"list": VIEWER, "retrieve": VIEWER, "decisions": VIEWER}

    @extend_schema(responses=DecisionSerializer(many=True), filters=False)
    @action(detail=True, methods=["get"], filterset_class=None, sorts=("-at",))
    def decisions(self, request: Request, pk: str) -> Response:
        """List the decisions of the tick."""
        return self.paged(decisions().filter(tick_id=self.get_object().pk), DecisionSerializer)
