"""Prometheus service discovery."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.views.base import UnpagedViewSet
from lcm.domain.access import PROMETHEUS
from observations.models import ScrapeTarget
from observations.selectors.discovery import http_sd_targets


class TargetGroupSerializer(serializers.Serializer[Any]):
    targets = serializers.ListField(child=serializers.CharField())
    labels = serializers.DictField(child=serializers.CharField())


@extend_schema(tags=["for Prometheus"])
class TargetViewSet(UnpagedViewSet[ScrapeTarget]):
    """Scrape targets: controllers, web and worker processes, and READY slots."""

    queryset = ScrapeTarget.objects.none()
    serializer_class = TargetGroupSerializer
    access = {"list": PROMETHEUS}

    @extend_schema(responses=TargetGroupSerializer(many=True))
    def list(self, request: Request) -> Response:
        """List targets in the format of Prometheus HTTP service discovery.

        Requires scope prometheus:targets.
        """
        return Response(http_sd_targets())
