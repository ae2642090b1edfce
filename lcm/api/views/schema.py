"""The OpenAPI document."""

from __future__ import annotations

from threading import Lock
from typing import Any

from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.access import VIEWER

_generating = Lock()


class SchemaView(SpectacularAPIView):
    """Generates one document at a time: DRF's inspectors keep the view they describe, for all threads."""

    access = {"get": VIEWER}

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with _generating:
            response: Response = super().get(request, *args, **kwargs)
        return response
