"""Webhooks, rules, the delivery log with the entries of inboxes, and the objects that people watch."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _

from lcm.models.base import DatedModel, IdModel
from lcm.models.people import User

SALT_LENGTH = 32
DIGEST_INTERVAL = timedelta(minutes=5)


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
    EMAIL = "email", _("E-mail")
    INBOX = "inbox", _("Inbox")


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
    webhook = models.ForeignKey(
        Webhook, on_delete=models.PROTECT, null=True, blank=True, related_name="rules"
    )
    # Recipients of the other channels: user names, roles such as `role:Admin`, and e-mail addresses.
    recipients = models.JSONField(default=list, blank=True)
    # Events of the rule within this time become one e-mail.
    digest_interval = models.DurationField(default=DIGEST_INTERVAL)
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("rule")
        verbose_name_plural = _("rules")
        constraints = [
            models.CheckConstraint(name="rule_channel_known", condition=Q(channel__in=Channel.values)),
            models.CheckConstraint(
                name="rule_webhook_of_channel",
                condition=Q(channel=Channel.WEBHOOK, webhook__isnull=False)
                | Q(~Q(channel=Channel.WEBHOOK), webhook=None),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    PENDING = "pending", _("Pending")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Failed")
    DROPPED = "dropped", _("Dropped")


class Cause(models.TextChoices):
    """Why somebody gets an event."""

    RULE = "rule", _("Rule")
    OWNER = "owner", _("Owner")
    WATCHER = "watcher", _("Watching")


PERSONAL = (Cause.OWNER, Cause.WATCHER)


class Delivery(IdModel):
    """An event for a webhook, an e-mail address or the inbox of a person.

    The id is the `webhook-id` of all attempts. An entry of an inbox is delivered as soon as it exists.
    """

    # Id of the change log entry; null for a test.
    event = models.BigIntegerField(null=True, editable=False)
    type = models.CharField(max_length=40)
    cause = models.CharField(max_length=10, choices=Cause, default=Cause.RULE)
    rule = models.ForeignKey(EventRule, on_delete=models.SET_NULL, null=True, related_name="deliveries")
    channel = models.CharField(max_length=10, choices=Channel, default=Channel.WEBHOOK)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, null=True, related_name="deliveries")
    recipient = models.ForeignKey(User, on_delete=models.CASCADE, null=True, db_index=False, related_name="+")
    # E-mail address; empty only if the recipient had none.
    address = models.CharField(max_length=254, blank=True)
    # The request body, or the event as CloudEvents JSON. All attempts send the same bytes.
    payload = models.TextField()
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.PENDING)
    # Why the last attempt failed or the delivery was dropped.
    error = models.CharField(max_length=300, blank=True)
    attempt_count = models.PositiveSmallIntegerField(default=0)
    # Time of the next attempt, or the end of the lease of the worker that makes it. Null: no attempt follows.
    next_attempt_at = models.DateTimeField(null=True)
    retry_until = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)
    # When the recipient read the entry of the inbox.
    read_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        constraints = [
            models.UniqueConstraint(
                fields=["event", "rule"],
                condition=Q(channel=Channel.WEBHOOK),
                name="delivery_once_for_each_rule",
            ),
            models.UniqueConstraint(
                fields=["event", "address"],
                condition=Q(channel=Channel.EMAIL) & ~Q(address=""),
                name="delivery_once_for_each_address",
            ),
            models.UniqueConstraint(
                fields=["event", "recipient"],
                condition=Q(channel=Channel.INBOX),
                name="delivery_once_for_each_inbox",
            ),
            models.CheckConstraint(name="delivery_state_known", condition=Q(state__in=DeliveryState.values)),
            models.CheckConstraint(name="delivery_cause_known", condition=Q(cause__in=Cause.values)),
            models.CheckConstraint(
                name="delivery_target_of_channel",
                condition=Q(channel=Channel.WEBHOOK, webhook__isnull=False, recipient=None, address="")
                | Q(Q(channel=Channel.EMAIL, webhook=None), ~Q(address="") | Q(state=DeliveryState.DROPPED))
                | Q(channel=Channel.INBOX, webhook=None, recipient__isnull=False, address=""),
            ),
            models.CheckConstraint(
                name="delivery_pending_has_next_attempt",
                condition=Q(state=DeliveryState.PENDING, next_attempt_at__isnull=False)
                | Q(~Q(state=DeliveryState.PENDING), next_attempt_at=None),
            ),
            models.CheckConstraint(
                name="delivery_read_in_inbox", condition=Q(read_at=None) | Q(channel=Channel.INBOX)
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
            models.Index(
                fields=["recipient", "created_at", "id"],
                condition=Q(recipient__isnull=False),
                name="delivery_of_recipient",
            ),
            models.Index(
                fields=["recipient"],
                condition=Q(channel=Channel.INBOX, read_at=None),
                name="delivery_unread",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.short_id}"

    @property
    def target(self) -> str:
        """Return the name of the webhook, the e-mail address or the user name."""
        if self.webhook:
            return self.webhook.name
        return self.address or (self.recipient.username if self.recipient else "")

    @cached_property
    def cloud_event(self) -> dict[str, Any]:
        """Return the event of an e-mail or of an entry of an inbox."""
        event: dict[str, Any] = json.loads(self.payload)
        return event


class DeliveryAttempt(models.Model):
    """One request to a webhook or mail server, and its result."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    # Status of HTTP or SMTP. Null: no response.
    status = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=300, blank=True)
    # The first kilobyte.
    response = models.TextField(blank=True)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.at:%F %T} {self.status or self.error}"


class Watch(IdModel):
    """An object whose events a person gets. Objects are named as in the change log."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, db_index=False, related_name="watches")
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=40)
    object_label = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["object_label", "id"]
        verbose_name = _("watched object")
        verbose_name_plural = _("watched objects")
        constraints = [
            models.UniqueConstraint(fields=["user", "object_type", "object_id"], name="watch_once")
        ]
        indexes = [models.Index(fields=["object_id"], name="watch_of_object")]

    def __str__(self) -> str:
        return self.object_label
