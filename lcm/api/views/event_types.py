"""API view of the event catalogue."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.pagination import SinglePage
from lcm.api.views.base import LcmViewSet
from lcm.domain.access import VIEWER
from lcm.domain.errors import NotFound
from lcm.events.catalog import EventType, Severity, event_types, example_event
from lcm.models import ChangeLog


class EventTypeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Name in rules; the CloudEvents type has the prefix `org.lcm.`.")
    title = serializers.CharField()
    description = serializers.CharField()
    severity = serializers.ChoiceField(choices=[each.value for each in Severity])
    object_type = serializers.CharField(source="subject.object_type", help_text="Kind of object.")
    dataschema = serializers.URLField(source="schema_url", help_text="JSON Schema of the data.")
    example = serializers.SerializerMethodField(help_text="An example, as a webhook receives it.")

    def get_example(self, kind: EventType) -> dict[str, Any]:
        return example_event(kind)


@extend_schema(tags=["events"])
class EventTypeViewSet(LcmViewSet[ChangeLog]):
    """Types of events that LCM publishes."""

    queryset = ChangeLog.objects.none()
    serializer_class = EventTypeSerializer
    filter_backends = []
    pagination_class = SinglePage
    lookup_field = "name"
    lookup_value_regex = "[a-z_]+[.][a-z_]+"
    access = {"list": VIEWER, "retrieve": VIEWER, "data_schema": VIEWER}

    @extend_schema(responses=EventTypeSerializer(many=True))
    def list(self, request: Request) -> Response:
        rows: Any = self.paginate_queryset(list(event_types().values()))
        return self.get_paginated_response(EventTypeSerializer(rows, many=True).data)

    @extend_schema(responses=EventTypeSerializer)
    def retrieve(self, request: Request, name: str) -> Response:
        return Response(EventTypeSerializer(_type(name)).data)

    @extend_schema(responses={200: {"type": "object", "additionalProperties": True}})
    @action(detail=True, url_path="schema", url_name="schema")
    def data_schema(self, request: Request, name: str) -> Response:
        """Return the JSON Schema of the data of an event."""
        return Response(_type(name).schema)


def _type(name: str) -> EventType:
    if name not in event_types():
        raise NotFound(gettext("There is no event type %(name)s.") % {"name": name})
    return event_types()[name]
