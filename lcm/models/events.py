"""Webhooks, the rules that select events for them, and the delivery log."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _

from lcm.models.base import DatedModel, IdModel
from lcm.models.people import User

SALT_LENGTH = 32


def new_salt() -> str:
    return get_random_string(SALT_LENGTH)


class WebhookFormat(models.TextChoices):
    CLOUDEVENTS = "cloudevents", _("CloudEvents")
    SLACK = "slack", _("Slack, Mattermost")


class Webhook(DatedModel):
    """An HTTP endpoint that receives events.

    The secret is derived from SECRET_KEY and a salt, so the database does not contain it.
    """

    name = models.CharField(max_length=63, unique=True)
    url = models.CharField(max_length=500)
    format = models.CharField(max_length=12, choices=WebhookFormat, default=WebhookFormat.CLOUDEVENTS)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=300, blank=True, editable=False)
    failing_since = models.DateTimeField(null=True, blank=True, editable=False)
    owner = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    salt = models.CharField(max_length=SALT_LENGTH, default=new_salt, editable=False)
    # The secret before the last rotation also signs until this time.
    previous_salt = models.CharField(max_length=SALT_LENGTH, blank=True, editable=False)
    previous_until = models.DateTimeField(null=True, blank=True, editable=False)
    # The worker that holds this lease is the only one that sends to the endpoint.
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)
    # Set after creation and rotation only, not stored.
    secret: str

    class Meta:
        ordering = ["name"]
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        constraints = [
            models.CheckConstraint(name="webhook_format_known", condition=Q(format__in=WebhookFormat.values))
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def origin(self) -> str:
        """Return the URL without its path, which is a secret of chat systems."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def state(self) -> str:
        if not self.enabled:
            return "disabled"
        return "failing" if self.failing_since else "enabled"


class Channel(models.TextChoices):
    WEBHOOK = "webhook", _("Webhook")


class EventRule(DatedModel):
    """Selects events by type and conditions. Entries of a list are patterns; an empty list matches all."""

    name = models.CharField(max_length=63, unique=True)
    event_types = models.JSONField(default=list)
    pools = models.JSONField(default=list, blank=True)
    definitions = models.JSONField(default=list, blank=True)
    domains = models.JSONField(default=list, blank=True)
    projects = models.JSONField(default=list, blank=True)
    severities = models.JSONField(default=list, blank=True)
    channel = models.CharField(max_length=10, choices=Channel, default=Channel.WEBHOOK)
    webhook = models.ForeignKey(Webhook, on_delete=models.PROTECT, related_name="rules")
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("rule")
        verbose_name_plural = _("rules")
        constraints = [
            models.CheckConstraint(name="rule_channel_known", condition=Q(channel__in=Channel.values))
        ]

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    PENDING = "pending", _("Pending")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Failed")
    DROPPED = "dropped", _("Dropped")


class Delivery(IdModel):
    """An event for one webhook. The id is the `webhook-id` of all its attempts."""

    # Id of the change log entry; null for a test.
    event = models.BigIntegerField(null=True, editable=False)
    type = models.CharField(max_length=40)
    rule = models.ForeignKey(EventRule, on_delete=models.SET_NULL, null=True, related_name="deliveries")
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    # The request body. All attempts send the same bytes.
    payload = models.TextField()
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.PENDING)
    # Why the last attempt failed or the delivery was dropped.
    error = models.CharField(max_length=300, blank=True)
    attempt_count = models.PositiveSmallIntegerField(default=0)
    # Time of the next attempt, or the end of the lease of the worker that makes it. Null: no attempt follows.
    next_attempt_at = models.DateTimeField(null=True)
    retry_until = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        constraints = [
            models.UniqueConstraint(fields=["event", "rule"], name="delivery_once_for_each_rule"),
            models.CheckConstraint(name="delivery_state_known", condition=Q(state__in=DeliveryState.values)),
            models.CheckConstraint(
                name="delivery_pending_has_next_attempt",
                condition=Q(state=DeliveryState.PENDING, next_attempt_at__isnull=False)
                | Q(~Q(state=DeliveryState.PENDING), next_attempt_at=None),
            ),
        ]
        indexes = [
            models.Index(
                fields=["webhook", "next_attempt_at"],
                condition=Q(state=DeliveryState.PENDING),
                name="delivery_due",
            ),
            models.Index(fields=["created_at", "id"], name="delivery_newest"),
            models.Index(fields=["webhook", "created_at", "id"], name="delivery_of_webhook"),
            models.Index(fields=["state", "created_at", "id"], name="delivery_in_state"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.short_id}"


class DeliveryAttempt(models.Model):
    """One request to a webhook and its result."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    # Null: the endpoint sent no response.
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=300, blank=True)
    # The first kilobyte.
    response = models.TextField(blank=True)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.at:%F %T} {self.status or self.error}"
