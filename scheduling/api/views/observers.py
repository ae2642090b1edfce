"""API views of observers and lifecycle handlers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.pagination import SinglePage
from lcm.api.schema import ErrorSerializer
from lcm.api.views.base import LcmViewSet
from lcm.domain.access import OPERATOR, VIEWER
from scheduling.models import ObserverRun, RunKind
from scheduling.selectors.observers import STATES, ObserverStatus, observer_status, observer_statuses, runs_of
from scheduling.services.observer_runs import enqueue_run

RUNS_SHOWN = 50


class ObserverRunSerializer(serializers.ModelSerializer[ObserverRun]):
    class Meta:
        model = ObserverRun
        fields = [
            "id", "started_at", "duration_ms", "success_count", "failure_count", "stale_count",
            "skipped_count", "error",
        ]  # fmt: skip


class ObserverSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=RunKind.choices)
    text = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    interval_seconds = serializers.SerializerMethodField()
    lag_seconds = serializers.SerializerMethodField(help_text="How far its records are behind.")
    last_run = ObserverRunSerializer(source="last", allow_null=True)

    def get_interval_seconds(self, row: ObserverStatus) -> float:
        return row.interval.total_seconds()

    def get_lag_seconds(self, row: ObserverStatus) -> float | None:
        return None if row.lag is None else row.lag.total_seconds()


class ObserverDetailSerializer(ObserverSerializer):
    runs = serializers.SerializerMethodField(help_text="The newest runs; consecutive idle runs are merged.")

    @extend_schema_field(ObserverRunSerializer(many=True))
    def get_runs(self, row: ObserverStatus) -> Any:
        return ObserverRunSerializer(runs_of(row.name)[:RUNS_SHOWN], many=True).data


@extend_schema(tags=["observers"])
class ObserverViewSet(LcmViewSet[ObserverRun]):
    """Observers and lifecycle handlers with their last run."""

    queryset = ObserverRun.objects.none()
    serializer_class = ObserverSerializer
    filter_backends = []
    pagination_class = SinglePage
    lookup_field = "name"
    lookup_value_regex = "[A-Za-z0-9_-]+"
    access = {"list": VIEWER, "retrieve": VIEWER, "run": OPERATOR}

    @extend_schema(responses=ObserverSerializer(many=True))
    def list(self, request: Request) -> Response:
        rows: Any = self.paginate_queryset(observer_statuses(self.now()))
        return self.get_paginated_response(ObserverSerializer(rows, many=True).data)

    @extend_schema(responses=ObserverDetailSerializer)
    def retrieve(self, request: Request, name: str) -> Response:
        return Response(ObserverDetailSerializer(observer_status(name, self.now())).data)

    @extend_schema(request=None, responses={202: ObserverSerializer, 503: ErrorSerializer})
    @action(detail=True, methods=["post"])
    def run(self, request: Request, name: str) -> Response:
        """Enqueue a run."""
        self.reject_fields(request)
        found = observer_status(name, self.now())
        enqueue_run(found.kind, name)
        return Response(ObserverSerializer(found).data, status=202)
