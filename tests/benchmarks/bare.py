"""LCM with an extra URL: a minimal DRF view that stores the request body."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from lcm.wsgi import application

from django.urls import path  # isort: skip
from rest_framework.request import Request  # isort: skip
from rest_framework.response import Response  # isort: skip
from rest_framework.views import APIView  # isort: skip

from lcm import urls  # isort: skip
from lcm.models import IdempotentResponse  # isort: skip


class BareInsert(APIView):
    """View with LCM's authentication that inserts one row."""

    permission_classes: list[Any] = []

    def post(self, request: Request) -> Response:
        row = IdempotentResponse.objects.create(
            principal="bench", key=str(uuid4()), fingerprint="", body=request.data
        )
        return Response({"id": str(row.pk)})


urls.urlpatterns.insert(0, path("bench/bare", BareInsert.as_view(), name="bare"))

__all__ = ["application"]
