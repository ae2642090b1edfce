"""What every API view is made of."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request

from lcm.access import Rule
from lcm.actors import Actor
from lcm.api.authentication import actor_of
from lcm.api.idempotency import IdempotentPosts
from lcm.api.serializers import ReasonSerializer
from lcm.errors import InvalidInput

M = TypeVar("M", bound=Model)
# Not every client sends a body with a DELETE.
deletion_schema = extend_schema(
    parameters=[
        OpenApiParameter(
            "reason",
            {"type": "string", "minLength": 1, "maxLength": 500},
            required=True,
            description="Why, for the change log. A JSON body with `reason` may replace it.",
        )
    ],
    responses={204: None},
)


class LcmViewSet(IdempotentPosts, viewsets.GenericViewSet[M]):
    """Rules by action, services for changes, cursor paging; ids are UUIDs."""

    access: dict[str, Rule]
    sorts: tuple[str, ...] = ("-created_at",)
    lookup_value_regex = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

    @property
    def actor(self) -> Actor:
        return actor_of(self.request)

    def taken(self, serializer: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
        """The request's body, checked."""
        form = serializer(data=request.data, context=self.get_serializer_context())
        form.is_valid(raise_exception=True)
        data: dict[str, Any] = form.validated_data
        return data

    def given(self, serializer: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
        """Only what the body of a PATCH says; what cannot be changed is refused, not overlooked."""
        known = {name for name, each in serializer().fields.items() if not each.read_only}
        unknown = set(request.data) - known if isinstance(request.data, dict) else set()
        if unknown:
            raise InvalidInput(dict.fromkeys(sorted(unknown), "This cannot be changed."))
        form = serializer(data=request.data, partial=True, context=self.get_serializer_context())
        form.is_valid(raise_exception=True)
        data: dict[str, Any] = form.validated_data
        return data

    def reason_to_delete(self, request: Request) -> str:
        """From the body or the address."""
        form = ReasonSerializer(data=request.data or request.query_params)
        form.is_valid(raise_exception=True)
        reason: str = form.validated_data["reason"]
        return reason

    now = staticmethod(timezone.now)


class ReadViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, LcmViewSet[M]):
    """A list and its items."""
