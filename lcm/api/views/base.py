"""What every API view is made of."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model
from django.utils import timezone
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request

from lcm.access import Rule
from lcm.actors import Actor
from lcm.api.authentication import actor_of
from lcm.api.idempotency import IdempotentPosts
from lcm.errors import InvalidInput

M = TypeVar("M", bound=Model)


class LcmViewSet(IdempotentPosts, viewsets.GenericViewSet[M]):
    """Rules by action, services for changes, cursor paging; ids are UUIDs."""

    access: dict[str, Rule]
    sorts: tuple[str, ...] = ("-created_at",)
    lookup_value_regex = "[0-9a-f-]{36}"

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

    now = staticmethod(timezone.now)


class ReadViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, LcmViewSet[M]):
    """A list and its items."""
