"""API views of webhooks, rules and the delivery log."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api import webhook_serializers as s
from lcm.api.serializers import ReasonSerializer
from lcm.api.views.base import ReadViewSet, change, command, deletion
from lcm.domain.access import ADMIN
from lcm.models import Delivery, EventRule, Webhook
from lcm.selectors import deliveries as selectors
from lcm.services import deliveries, event_rules, webhooks
from lcm.web.delivery_filters import DeliveryFilter, RuleFilter, WebhookFilter

CRUD = dict.fromkeys(("list", "retrieve", "create", "partial_update", "destroy"), ADMIN)


@extend_schema(tags=["events"])
class WebhookViewSet(ReadViewSet[Webhook]):
    queryset = selectors.webhooks()
    serializer_class = s.WebhookSerializer
    filterset_class = WebhookFilter
    sorts = ("name", "created_at")
    shown_once = ("secret",)
    access = CRUD | {"rotate": ADMIN, "test": ADMIN}

    @extend_schema(request=s.WebhookRequestSerializer, responses={201: s.NewWebhookSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.WebhookRequestSerializer, request)
        created = webhooks.create_webhook(**data, actor=self.actor, now=self.now())
        return self.shown(_with_secret(*created), s.NewWebhookSerializer, 201)

    @change(s.WebhookChangeSerializer, s.WebhookSerializer)
    def partial_update(self, webhook: Webhook, **changes: Any) -> Webhook:
        return webhooks.update_webhook(webhook=webhook, actor=self.actor, now=self.now(), **changes)

    @deletion
    def destroy(self, webhook: Webhook, reason: str) -> None:
        webhooks.delete_webhook(webhook=webhook, reason=reason, actor=self.actor, now=self.now())

    @command(ReasonSerializer, s.NewWebhookSerializer)
    def rotate(self, webhook: Webhook, reason: str) -> Webhook:
        """Replace the secret; for 24 hours requests also have the signature of the previous one."""
        return _with_secret(
            *webhooks.rotate_webhook_secret(webhook=webhook, reason=reason, actor=self.actor, now=self.now())
        )

    @command(s.EventTypeNameSerializer, s.DeliverySerializer, status=201)
    def test(self, webhook: Webhook, event_type: str) -> Delivery:
        """Enqueue a delivery of the example of an event type."""
        return deliveries.send_test(webhook=webhook, event_type=event_type, actor=self.actor, now=self.now())


@extend_schema(tags=["events"])
class EventRuleViewSet(ReadViewSet[EventRule]):
    queryset = selectors.rules()
    serializer_class = s.RuleSerializer
    filterset_class = RuleFilter
    sorts = ("name", "created_at")
    access = CRUD | {"preview": ADMIN, "test": ADMIN}

    @extend_schema(request=s.RuleRequestSerializer, responses={201: s.RuleSerializer})
    def create(self, request: Request) -> Response:
        data = self.validated(s.RuleRequestSerializer, request)
        rule = event_rules.create_rule(**data, actor=self.actor, now=self.now())
        return self.shown(rule, s.RuleSerializer, 201)

    @change(s.RuleRequestSerializer, s.RuleSerializer)
    def partial_update(self, rule: EventRule, **changes: Any) -> EventRule:
        return event_rules.update_rule(rule=rule, actor=self.actor, now=self.now(), **changes)

    @deletion
    def destroy(self, rule: EventRule, reason: str) -> None:
        event_rules.delete_rule(rule=rule, reason=reason, actor=self.actor, now=self.now())

    @command(s.EventTypeNameSerializer, s.SentTestSerializer, status=201)
    def test(self, rule: EventRule, event_type: str) -> dict[str, list[Delivery]]:
        """Send the example of an event type to everybody whom the rule notifies."""
        sent = deliveries.send_rule_test(rule=rule, event_type=event_type, actor=self.actor, now=self.now())
        return {"deliveries": sent}

    @extend_schema(responses=s.RulePreviewSerializer)
    @action(detail=True)
    def preview(self, request: Request, pk: str) -> Response:
        """Return the events of the last 7 days that the rule would have matched."""
        return self.shown(selectors.preview_rule(self.get_object(), now=self.now()), s.RulePreviewSerializer)


@extend_schema(tags=["events"])
class DeliveryViewSet(ReadViewSet[Delivery]):
    queryset = selectors.deliveries()
    serializer_class = s.DeliverySerializer
    filterset_class = DeliveryFilter
    access = {"list": ADMIN, "retrieve": ADMIN, "retry": ADMIN}

    @extend_schema(responses=s.DeliveryDetailSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        return self.shown(self.get_object(), s.DeliveryDetailSerializer)

    @command(ReasonSerializer, s.DeliverySerializer)
    def retry(self, delivery: Delivery, reason: str) -> Delivery:
        """Send the delivery again."""
        return deliveries.retry_delivery(delivery=delivery, reason=reason, actor=self.actor, now=self.now())


def _with_secret(webhook: Webhook, secret: str) -> Webhook:
    webhook.secret = secret
    return webhook
