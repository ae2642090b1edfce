"""Base classes of API views."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from django.db.models import Model
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.authentication import actor_of
from lcm.api.idempotency import IdempotentPostMixin
from lcm.api.serializers import ReasonSerializer
from lcm.domain.access import AccessPolicy
from lcm.domain.actors import Actor
from lcm.models.base import ID_PATTERN

if TYPE_CHECKING:
    from rest_framework.decorators import ViewSetAction

M = TypeVar("M", bound=Model)
UNKNOWN = "Unknown field."
# Not every client sends a body with a DELETE.
REASON_PARAMETER = OpenApiParameter(
    "reason",
    {"type": "string", "minLength": 1, "maxLength": 500},
    required=True,
    description="Reason for the change log. Alternatively send it as `reason` in a JSON body.",
)
Body: TypeAlias = "type[serializers.Serializer[Any]]"
Operation: TypeAlias = Callable[..., Any]


def command(
    body: Body | None, response: Body | OpenApiTypes, *, status: int = 200, **options: Any
) -> Callable[[Operation], ViewSetAction[Any]]:
    """Make a POST on one object of a method that gets the object and the fields of the body.

    The method calls a service; the response shows the object that it returns.
    """

    def decorate(do: Operation) -> ViewSetAction[Any]:
        @extend_schema(request=body, responses={status: response})
        @action(detail=True, methods=["post"], **options)
        @wraps(do)
        def view(self: LcmViewSet[Any], request: Request, pk: str, **kwargs: str) -> Response:
            data = self.validated(body or serializers.Serializer, request)
            result = do(self, self.get_object(), **data, **kwargs)
            if isinstance(response, OpenApiTypes):
                return Response(result, status=status)
            return self.shown(result, response, status)

        return view

    return decorate


def change(body: Body, response: Body) -> Callable[[Operation], Operation]:
    """Make a PATCH of a method that gets the object and the fields that the body contains."""

    def decorate(do: Operation) -> Operation:
        @extend_schema(request=body, responses=response)
        @wraps(do)
        def view(self: LcmViewSet[Any], request: Request, pk: str) -> Response:
            changes = self.validated(body, request, partial=True)
            return self.shown(do(self, self.get_object(), **changes), response)

        return view

    return decorate


def deletion(do: Operation) -> Operation:
    """Make a DELETE of a method that gets the object and the reason."""

    @extend_schema(parameters=[REASON_PARAMETER], responses={204: None})
    @wraps(do)
    def view(self: LcmViewSet[Any], request: Request, pk: str) -> Response:
        reason = self.deletion_reason(request)
        do(self, self.get_object(), reason=reason)
        return Response(status=204)

    return view


class LcmViewSet(IdempotentPostMixin, viewsets.GenericViewSet[M]):
    """Base view set: policy per action, services for changes, cursor pagination, UUID keys."""

    access: dict[str, AccessPolicy]
    sorts: tuple[str, ...] = ("-created_at",)
    lookup_value_regex = ID_PATTERN

    @property
    def actor(self) -> Actor:
        return actor_of(self.request)

    def validated(self, serializer: Body, request: Request, *, partial: bool = False) -> dict[str, Any]:
        """Return the validated body of a request; reject keys that the serializer does not accept."""
        form = serializer(data=request.data, partial=partial, context=self.get_serializer_context())
        if unknown := unknown_keys(form, request.data):
            raise serializers.ValidationError(unknown)
        form.is_valid(raise_exception=True)
        data: dict[str, Any] = form.validated_data
        return data

    def shown(self, obj: Any, serializer: Body, status: int = 200) -> Response:
        return Response(serializer(obj, context=self.get_serializer_context()).data, status=status)

    def paged(self, rows: Any, serializer: Body) -> Response:
        """Return a page of rows that belong to an object."""
        page: Any = self.paginate_queryset(rows)
        return self.get_paginated_response(serializer(page, many=True).data)

    def reject_fields(self, request: Request) -> None:
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


class UnpagedViewSet(LcmViewSet[M]):
    """Base view set without lists that clients page through or filter."""

    pagination_class = None
    filter_backends = ()


class ReadViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, LcmViewSet[M]):
    """List and retrieve."""


def unknown_keys(field: object, data: object) -> dict[str, Any]:
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
