"""Serializers of webhooks, rules, and deliveries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework import serializers

from lcm.events.catalog import Severity, event_types
from lcm.models import Channel, Delivery, DeliveryAttempt, EventRule, Webhook, WebhookFormat
from lcm.services.event_rules import MAX_DIGEST_INTERVAL, MAX_PATTERN_LENGTH, MAX_PATTERNS
from lcm.web.delivery_filters import WEBHOOK_STATES


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    state = serializers.ChoiceField(choices=WEBHOOK_STATES, read_only=True)

    class Meta:
        model = Webhook
        fields = [
            "id", "name", "url", "format", "enabled", "state", "disabled_reason", "failing_since", "owner",
            "previous_until", "created_at", "updated_at",
        ]  # fmt: skip
        extra_kwargs = {
            "failing_since": {"help_text": "First failure since the last success."},
            "previous_until": {
                "help_text": "Until then requests also have the signature of the previous secret."
            },
        }


class WebhookRequestSerializer(serializers.Serializer[object]):
    name = serializers.CharField(max_length=63)
    url = serializers.CharField(max_length=500)
    format = serializers.ChoiceField(choices=WebhookFormat.choices, required=False)


class WebhookChangeSerializer(WebhookRequestSerializer):
    enabled = serializers.BooleanField(required=False)


class NewWebhookSerializer(WebhookSerializer):
    secret = serializers.CharField(read_only=True, help_text="Shown only in this response.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]


class EventTypeNameSerializer(serializers.Serializer[object]):
    event_type = serializers.ChoiceField(choices=list(event_types()), help_text="Its example is sent.")


def _patterns(text: str) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=MAX_PATTERN_LENGTH),
        max_length=MAX_PATTERNS,
        required=False,
        help_text=text,
    )


class RuleRequestSerializer(serializers.Serializer[object]):
    name = serializers.CharField(max_length=63)
    event_types = serializers.ListField(
        child=serializers.CharField(max_length=MAX_PATTERN_LENGTH),
        min_length=1,
        max_length=MAX_PATTERNS,
        help_text="Names or patterns, such as `session.*`.",
    )
    pools = _patterns("Names or patterns. An empty list matches all events.")
    definitions = _patterns("Name and version, such as `ospf v1.0` or `ospf v*`.")
    domains = _patterns("Names or patterns.")
    projects = _patterns("`domain / project`, or patterns.")
    severities = serializers.ListField(
        child=serializers.ChoiceField(choices=[each.value for each in Severity]), max_length=3, required=False
    )
    channel = serializers.ChoiceField(
        choices=Channel.choices, required=False, help_text="`webhook` by default."
    )
    webhook = serializers.PrimaryKeyRelatedField(
        queryset=Webhook.objects.all(),
        required=False,
        allow_null=True,
        help_text="Required for the channel `webhook`.",
    )
    recipients = _patterns(
        "For the other channels: user names and roles such as `role:Admin`; for `email` also addresses."
    )
    digest_interval = serializers.DurationField(
        min_value=timedelta(0),
        max_value=MAX_DIGEST_INTERVAL,
        required=False,
        help_text="Events of the rule within this time become one e-mail; 5 min by default.",
    )
    enabled = serializers.BooleanField(required=False)


class RuleSerializer(serializers.ModelSerializer[EventRule]):
    class Meta:
        model = EventRule
        fields = [
            "id", "name", "event_types", "pools", "definitions", "domains", "projects", "severities",
            "channel", "webhook", "recipients", "digest_interval", "enabled", "created_at", "updated_at",
        ]  # fmt: skip


class MatchedEventSerializer(serializers.Serializer[object]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    type = serializers.CharField()
    name = serializers.CharField()
    message = serializers.CharField()


class RulePreviewSerializer(serializers.Serializer[object]):
    count = serializers.IntegerField(help_text="Events of the last 7 days that the rule would have matched.")
    limit = serializers.IntegerField(help_text="Only this many of the newest events were compared; 0: all.")
    examples = serializers.SerializerMethodField(help_text="The newest of them.")

    def get_examples(self, preview: Any) -> list[dict[str, Any]]:
        return [
            {
                "id": change.pk,
                "at": change.at,
                "type": change.event,
                "name": data.name,
                "message": data.message,
            }
            for change, data in preview.examples
        ]


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    class Meta:
        model = Delivery
        fields = [
            "id", "event", "type", "cause", "rule", "channel", "webhook", "recipient", "address", "state",
            "error", "attempt_count", "next_attempt_at", "created_at", "read_at",
        ]  # fmt: skip
        extra_kwargs = {
            "event": {"help_text": "Id of the change log entry; null for a test."},
            "cause": {"help_text": "Why it is sent: a rule, or the recipient owns or watches the object."},
            "recipient": {"help_text": "Person of an e-mail or an entry of an inbox."},
            "read_at": {"help_text": "When the recipient read the entry of the inbox."},
            "error": {"help_text": "Why the last attempt failed, or why nothing was sent."},
        }


class SentTestSerializer(serializers.Serializer[Any]):
    deliveries = DeliverySerializer(many=True)


class DeliveryAttemptSerializer(serializers.ModelSerializer[DeliveryAttempt]):
    class Meta:
        model = DeliveryAttempt
        fields = ["at", "duration_ms", "status", "error", "response"]


class DeliveryDetailSerializer(DeliverySerializer):
    attempts = DeliveryAttemptSerializer(many=True, read_only=True)

    class Meta(DeliverySerializer.Meta):
        fields = [*DeliverySerializer.Meta.fields, "payload", "attempts"]
