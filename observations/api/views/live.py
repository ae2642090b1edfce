"""API of live statistics."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.views.base import UnpagedViewSet
from lcm.domain.access import VIEWER
from lcm.domain.errors import InvalidInput
from lcm.models import Kernel, LabletSession
from observations.api import live_serializers as s
from observations.livestats.cached_stats import kernel_live_stats
from observations.livestats.live_stats import LiveStats
from observations.selectors import live as selectors


@extend_schema(tags=["live statistics"])
class SessionLiveViewSet(UnpagedViewSet[LabletSession]):
    """Current and past resource usage of a session."""

    queryset = LabletSession.objects.all()
    serializer_class = s.SessionLiveSerializer
    access = {"live_stats": VIEWER, "history": VIEWER}

    @extend_schema(responses=s.SessionLiveSerializer)
    @action(detail=True, url_path="live-stats", url_name="stats")
    def live_stats(self, request: Request, pk: str) -> Response:
        live = selectors.session_live(self.get_object())
        nodes = {str(node.kernel.pk): node.kernel.node_label for node in live.nodes}
        totals = {name: value.to_json() for name, value in live.totals.items()}
        return Response({**_shown(live.stats), "nodes": nodes, "totals": totals})

    @extend_schema(parameters=[s.HistoryRangeSerializer], responses=s.HistorySerializer)
    @action(detail=True, url_path="live-stats/history")
    def history(self, request: Request, pk: str) -> Response:
        form = s.HistoryRangeSerializer(data=request.query_params)
        form.is_valid(raise_exception=True)
        found = selectors.session_history(self.get_object(), **form.validated_data, now=self.now())
        return Response(s.HistorySerializer(found).data)


@extend_schema(tags=["live statistics"])
class LiveViewSet(UnpagedViewSet[Kernel]):
    """Current resource usage of many kernels."""

    queryset = Kernel.objects.none()
    serializer_class = s.BatchLiveSerializer
    access = {"create": VIEWER}

    @extend_schema(request=s.BatchSerializer, responses={200: s.BatchLiveSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.BatchSerializer, request)
        sessions = selectors.kernels_of(data.get("sessions", ()))
        ids = {*data.get("kernels", ()), *(key for kernels in sessions.values() for key in kernels)}
        if len(ids) > s.MOST_KERNELS:
            text = _("%(count)s kernels requested; the maximum is %(most)s.")
            shown = {"count": f"{len(ids):,}", "most": f"{s.MOST_KERNELS:,}"}
            raise InvalidInput({"sessions": text % shown})
        listed = {str(key): [str(each) for each in kernels] for key, kernels in sessions.items()}
        return Response({**_shown(kernel_live_stats(ids)), "sessions": listed})


def _shown(stats: LiveStats) -> dict[str, Any]:
    """Return the fields of LiveSerializer, built by hand because a response may hold 5,000 kernels."""
    return {
        "state": stats.state,
        "requested_at": stats.requested_at,
        "missing": [str(part) for part in stats.missing],
        "problems": stats.problems,
        "warnings": stats.warnings,
        "dropped": stats.dropped,
        "kernels": {
            kernel: {
                "state": each.state,
                "observed_at": each.observed_at,
                "metrics": {name: value.to_json() for name, value in each.metrics.items()},
            }
            for kernel, each in stats.kernels.items()
        },
    }
