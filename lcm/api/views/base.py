"""Base classes of API views."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request

from lcm.api.authentication import actor_of
from lcm.api.idempotency import IdempotentPostMixin
from lcm.api.serializers import ReasonSerializer
from lcm.domain.access import AccessPolicy
from lcm.domain.actors import Actor
from lcm.models.base import ID_PATTERN

M = TypeVar("M", bound=Model)
UNKNOWN = "Unknown field."
# Not every client sends a body with a DELETE.
deletion_schema = extend_schema(
    parameters=[
        OpenApiParameter(
            "reason",
            {"type": "string", "minLength": 1, "maxLength": 500},
            required=True,
            description="Reason for the change log. Alternatively send it as `reason` in a JSON body.",
        )
    ],
    responses={204: None},
)


class LcmViewSet(IdempotentPostMixin, viewsets.GenericViewSet[M]):
    """Base view set: policy per action, services for changes, cursor pagination, UUID keys."""

    access: dict[str, AccessPolicy]
    sorts: tuple[str, ...] = ("-created_at",)
    lookup_value_regex = ID_PATTERN

    @property
    def actor(self) -> Actor:
        return actor_of(self.request)

    def validated(
        self, serializer: type[serializers.Serializer[Any]], request: Request, *, partial: bool = False
    ) -> dict[str, Any]:
        """Return the validated body of a request; reject keys that the serializer does not accept."""
        form = serializer(data=request.data, partial=partial, context=self.get_serializer_context())
        if unknown := unknown_keys(form, request.data):
            raise serializers.ValidationError(unknown)
        form.is_valid(raise_exception=True)
        data: dict[str, Any] = form.validated_data
        return data

    def validated_changes(
        self, serializer: type[serializers.Serializer[Any]], request: Request
    ) -> dict[str, Any]:
        """Return only the fields that the body of a PATCH contains, validated."""
        return self.validated(serializer, request, partial=True)

    def refuse_fields(self, request: Request) -> None:
        """Reject a body with fields, for a request that takes none."""
        self.validated(serializers.Serializer, request)

    def deletion_reason(self, request: Request) -> str:
        """Return the reason from the body or from the query string."""
        if request.data:
            return str(self.validated(ReasonSerializer, request)["reason"])
        form = ReasonSerializer(data=request.query_params)
        form.is_valid(raise_exception=True)
        reason: str = form.validated_data["reason"]
        return reason

    now = staticmethod(timezone.now)


class ReadViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, LcmViewSet[M]):
    """List and retrieve."""


def unknown_keys(field: Any, data: Any) -> dict[str, Any]:
    """Return an error for each key that the serializer does not accept, also in nested objects and lists."""
    if isinstance(field, serializers.Serializer):
        if not isinstance(data, dict):
            return {}
        known = {name: each for name, each in field.fields.items() if not each.read_only}
        unknown = {str(name): [UNKNOWN] for name in data if name not in known}
        return unknown | _nested((name, each, data.get(name)) for name, each in known.items())
    child = getattr(field, "child", None)
    if child is None:
        return {}
    if isinstance(data, dict):
        return _nested((name, child, value) for name, value in data.items())
    if isinstance(data, list):
        return _nested((str(index), child, value) for index, value in enumerate(data))
    return {}


def _nested(parts: Any) -> dict[str, Any]:
    return {name: found for name, field, value in parts if (found := unknown_keys(field, value))}
