"""Admin of webhooks, rules and deliveries. They are changed on their pages only."""

from __future__ import annotations

from django.contrib import admin

from lcm.admin.data_fixes import ReadOnlyAdmin
from lcm.models import Delivery, DeliveryAttempt, EventRule, Watch, Webhook


@admin.register(Webhook)
class WebhookAdmin(ReadOnlyAdmin):
    """Omits the salts of the secrets and the path of the URL."""

    note = "Create, change and delete webhooks on the Webhooks page."
    note_page = "webhook_list"
    list_display = ("name", "origin", "format", "enabled", "failing_since", "created_at")
    list_filter = ("enabled", "format")
    search_fields = ("name",)
    ordering = ("name",)
    fields = (
        "name",
        "origin",
        "format",
        "enabled",
        "disabled_reason",
        "failing_since",
        "owner",
        "created_at",
    )


@admin.register(EventRule)
class EventRuleAdmin(ReadOnlyAdmin):
    note = "Create, change and delete rules on the Rules page."
    note_page = "rule_list"
    list_display = ("name", "channel", "webhook", "enabled", "created_at")
    list_filter = ("enabled", "channel")
    list_select_related = ("webhook",)
    search_fields = ("name", "webhook__name")
    ordering = ("name",)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    note = "Events for webhooks, e-mail addresses and inboxes. Deleted after 30 days."
    note_page = "delivery_list"
    list_display = ("type", "state", "channel", "target", "attempt_count", "created_at")
    list_filter = ("state", "channel", "created_at")
    list_select_related = ("webhook", "recipient")
    search_fields = ("type", "webhook__name", "address", "recipient__username")
    ordering = ("-created_at", "-id")
    sortable_by = ("created_at",)


@admin.register(DeliveryAttempt)
class DeliveryAttemptAdmin(ReadOnlyAdmin):
    note = "Requests to webhooks and e-mails, and their results."
    list_display = ("at", "status", "error", "duration_ms")
    list_filter = ("status",)
    search_fields = ("error",)
    ordering = ("-at", "-id")
    sortable_by = ("at",)


@admin.register(Watch)
class WatchAdmin(ReadOnlyAdmin):
    note = "People watch and stop watching objects on their pages."
    list_display = ("object_label", "object_type", "user", "created_at")
    list_filter = ("object_type",)
    list_select_related = ("user",)
    search_fields = ("object_label", "user__username")
    ordering = ("-created_at",)
