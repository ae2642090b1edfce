"""API views of the caller's own inbox, subscriptions and watched objects."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.pagination import SinglePage
from lcm.api.views.base import LcmViewSet, ReadViewSet, command
from lcm.domain.access import VIEWER
from lcm.domain.errors import InvalidInput, NotFound
from lcm.events.personal import chosen, offered_choices
from lcm.models import Channel, Delivery, User, Watch
from lcm.selectors.inbox import inbox_of, watches_of
from lcm.services import inbox, subscriptions
from lcm.web.delivery_filters import InboxFilter
from lcm.web.object_links import is_watchable, model_of


class InboxEntrySerializer(serializers.ModelSerializer[Delivery]):
    name = serializers.CharField(source="cloud_event.data.name", help_text="Name of the object.")
    message = serializers.CharField(source="cloud_event.data.message")
    reason = serializers.CharField(source="cloud_event.data.reason", help_text="Reason that the actor gave.")
    severity = serializers.ChoiceField(
        source="cloud_event.data.severity", choices=["info", "warning", "critical"]
    )
    url = serializers.CharField(
        source="cloud_event.data.url", allow_null=True, help_text="Page of the object."
    )

    class Meta:
        model = Delivery
        fields = [
            "id", "event", "type", "cause", "name", "message", "reason", "severity", "url", "created_at",
            "read_at",
        ]  # fmt: skip
        extra_kwargs = {
            "event": {"help_text": "Id of the change log entry; null for a test."},
            "cause": {"help_text": "A rule, or the caller owns or watches the object."},
        }


class MarkedSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="Entries that were unread.")


class SubscriptionSerializer(serializers.Serializer[Any]):
    event_type = serializers.CharField(help_text="`watched`: events of the objects that the caller watches.")
    inbox = serializers.BooleanField()
    email = serializers.BooleanField()


class SubscriptionChangeSerializer(serializers.Serializer[Any]):
    inbox = serializers.BooleanField(required=False)
    email = serializers.BooleanField(required=False)


class WatchedObjectSerializer(serializers.ModelSerializer[Watch]):
    class Meta:
        model = Watch
        fields = ["id", "object_type", "object_id", "object_label", "created_at"]


class WatchRequestSerializer(serializers.Serializer[Any]):
    object_type = serializers.ChoiceField(
        choices=["labletsession", "labletdefinition", "pool", "slot"], help_text="As in the change log."
    )
    object_id = serializers.UUIDField()


def _person(request: Request) -> User:
    assert isinstance(request.user, User)
    return request.user


@extend_schema(tags=["inbox"])
class InboxViewSet(ReadViewSet[Delivery]):
    """Entries of the caller's inbox."""

    queryset = Delivery.objects.none()
    serializer_class = InboxEntrySerializer
    filterset_class = InboxFilter
    access = dict.fromkeys(("list", "retrieve", "read", "unread", "read_all"), VIEWER)

    def get_queryset(self) -> QuerySet[Delivery]:
        return inbox_of(_person(self.request))

    @command(None, InboxEntrySerializer)
    def read(self, entry: Delivery) -> Delivery:
        """Mark an entry as read."""
        inbox.mark_read(user=_person(self.request), keys=[entry.pk], now=self.now())
        return self.get_object()

    @command(None, InboxEntrySerializer)
    def unread(self, entry: Delivery) -> Delivery:
        """Mark an entry as unread."""
        inbox.mark_unread(user=_person(self.request), keys=[entry.pk])
        return self.get_object()

    @extend_schema(request=None, responses=MarkedSerializer, filters=False)
    @action(detail=False, methods=["post"], url_path="read-all", url_name="read-all")
    def read_all(self, request: Request) -> Response:
        """Mark all entries as read."""
        self.reject_fields(request)
        count = inbox.mark_read(user=_person(self.request), now=self.now())
        return self.shown({"count": count}, MarkedSerializer)


@extend_schema(tags=["inbox"])
class SubscriptionViewSet(LcmViewSet[User]):
    """Channels by which the caller gets events about own sessions and watched objects."""

    queryset = User.objects.none()
    serializer_class = SubscriptionSerializer
    filter_backends = []
    pagination_class = SinglePage
    lookup_field = "event_type"
    lookup_value_regex = "[a-z_.]+"
    access = dict.fromkeys(("list", "partial_update"), VIEWER)

    @extend_schema(responses=SubscriptionSerializer(many=True))
    def list(self, request: Request) -> Response:
        rows: Any = self.paginate_queryset([self._row(name) for name in offered_choices()])
        return self.get_paginated_response(SubscriptionSerializer(rows, many=True).data)

    @extend_schema(request=SubscriptionChangeSerializer, responses=SubscriptionSerializer)
    def partial_update(self, request: Request, event_type: str) -> Response:
        if event_type not in offered_choices():
            raise NotFound(gettext("There is no event type %(name)s.") % {"name": event_type})
        given = self.validated(SubscriptionChangeSerializer, request, partial=True)
        subscriptions.choose_type(
            user=_person(self.request),
            name=event_type,
            channels={Channel(name): is_on for name, is_on in given.items()},
            actor=self.actor,
            now=self.now(),
        )
        return self.shown(self._row(event_type), SubscriptionSerializer)

    def _row(self, name: str) -> dict[str, object]:
        channels = (Channel.INBOX, Channel.EMAIL)
        return {"event_type": name} | {each: name in chosen(_person(self.request), each) for each in channels}


@extend_schema(tags=["inbox"])
class WatchViewSet(ReadViewSet[Watch]):
    """Objects that the caller watches."""

    queryset = Watch.objects.none()
    serializer_class = WatchedObjectSerializer
    access = dict.fromkeys(("list", "retrieve", "create", "destroy"), VIEWER)

    def get_queryset(self) -> QuerySet[Watch]:
        return watches_of(_person(self.request))

    @extend_schema(request=WatchRequestSerializer, responses={201: WatchedObjectSerializer})
    def create(self, request: Request) -> Response:
        """Watch an object; watching it again changes nothing."""
        data = self.validated(WatchRequestSerializer, request)
        model = model_of(data["object_type"])
        if model is None or not is_watchable(data["object_type"]):
            raise InvalidInput({"object_type": gettext("Objects of this kind cannot be watched.")})
        obj = model._default_manager.filter(pk=data["object_id"]).first()
        if obj is None:
            raise InvalidInput({"object_id": gettext("The object does not exist.")})
        watch = subscriptions.watch_object(user=_person(self.request), obj=obj, now=self.now())
        return self.shown(watch, WatchedObjectSerializer, 201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Stop watching an object."""
        self.reject_fields(request)
        watch = self.get_object()
        subscriptions.stop_watching(
            user=_person(self.request), object_type=watch.object_type, object_id=watch.object_id
        )
        return Response(status=204)
