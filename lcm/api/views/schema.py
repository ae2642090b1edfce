"""View of the OpenAPI document."""

from __future__ import annotations

from threading import Lock
from typing import Any

from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.domain.access import VIEWER

_generating = Lock()


class SchemaView(SpectacularAPIView):
    """Generates one document at a time, because DRF's inspectors share their current view across threads."""

    access = {"get": VIEWER}

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: object, **kwargs: Any) -> Response:
        with _generating:
            response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        return response
