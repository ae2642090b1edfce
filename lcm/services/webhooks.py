"""Create, change, rotate, disable and delete webhooks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.errors import InvalidInput
from lcm.events.webhook_secrets import secret_of
from lcm.models import Delivery, DeliveryState, Webhook, WebhookFormat
from lcm.models.events import new_salt
from lcm.services.changelog import apply_changes, log_change
from lcm.services.validation import clean_and_save, delete_if_unused, require_reason

# After a rotation the previous secret also signs for this long.
ROTATION_OVERLAP = timedelta(hours=24)
WAS_DISABLED = "The webhook was disabled when the event occurred."


def create_webhook(
    *, name: str, url: str, format: str = WebhookFormat.CLOUDEVENTS, actor: Actor, now: datetime
) -> tuple[Webhook, str]:
    """Create a webhook; return it with its secret."""
    _check_url(url)
    webhook = Webhook(name=name, url=url, format=format, owner_id=actor.user_id, created_at=now)
    with transaction.atomic():
        clean_and_save(webhook)
        log_change(
            webhook,
            actor=actor,
            event="webhook.created",
            message=f"webhook {webhook} created",
            after={"name": name, "url": webhook.origin, "format": format},
            now=now,
        )
    return webhook, secret_of(webhook)


def update_webhook(*, webhook: Webhook, actor: Actor, now: datetime, **changes: Any) -> Webhook:
    """Change name, URL, format or `enabled`. Enabling clears the failure; disabling drops what is pending."""
    if "url" in changes:
        _check_url(changes["url"])
    old_origin = webhook.origin
    with transaction.atomic():
        Webhook.objects.select_for_update().filter(pk=webhook.pk).first()
        before, after = apply_changes(webhook, changes)
        if not after:
            return webhook
        fields = list(after)
        if after.get("enabled") is not None:
            webhook.disabled_reason, webhook.failing_since = "", None
            fields += ["disabled_reason", "failing_since"]
        clean_and_save(webhook, fields=[*fields, "updated_at"])
        if "enabled" in after:
            # Routing may have added deliveries while the webhook was being disabled.
            is_on = after["enabled"]
            _drop_pending(webhook, error=WAS_DISABLED if is_on else f"{actor.label} disabled the webhook.")
        if "url" in after:
            before, after = before | {"url": old_origin}, after | {"url": webhook.origin}
        log_change(
            webhook,
            actor=actor,
            event="webhook.updated",
            message=f"webhook {webhook} updated",
            before=before,
            after=after,
            now=now,
        )
    return webhook


def rotate_webhook_secret(
    *, webhook: Webhook, reason: str, actor: Actor, now: datetime
) -> tuple[Webhook, str]:
    """Replace the secret; requests carry the signatures of both secrets for `ROTATION_OVERLAP`."""
    require_reason(reason)
    with transaction.atomic():
        stored = Webhook.objects.select_for_update().get(pk=webhook.pk)
        webhook.salt, webhook.previous_salt = new_salt(), stored.salt
        webhook.previous_until = now + ROTATION_OVERLAP
        webhook.save(update_fields=["salt", "previous_salt", "previous_until", "updated_at"])
        log_change(
            webhook,
            actor=actor,
            event="webhook.secret_rotated",
            message=f"webhook {webhook}: secret rotated",
            reason=reason,
            now=now,
        )
    return webhook, secret_of(webhook)


def delete_webhook(*, webhook: Webhook, reason: str, actor: Actor, now: datetime) -> None:
    """Delete a webhook with its deliveries; raise InUse if a rule uses it."""
    require_reason(reason)
    with transaction.atomic():
        # Workers lock a webhook before its deliveries, too.
        Webhook.objects.select_for_update().filter(pk=webhook.pk).first()
        log_change(
            webhook,
            actor=actor,
            event="webhook.deleted",
            message=f"webhook {webhook} deleted",
            reason=reason,
            before={"name": webhook.name, "url": webhook.origin},
            now=now,
        )
        delete_if_unused(webhook)


def disable_webhook(*, webhook: Webhook, reason: str, now: datetime) -> bool:
    """Disable a webhook that fails; return whether it was enabled."""
    with transaction.atomic():
        moved = Webhook.objects.filter(pk=webhook.pk, enabled=True).update(
            enabled=False, disabled_reason=reason, updated_at=now
        )
        if moved:
            _drop_pending(webhook, error=f"LCM disabled the webhook: {reason}.")
            log_change(
                webhook,
                actor=SYSTEM,
                event="webhook.disabled",
                message=f"webhook {webhook} disabled: {reason}",
                before={"enabled": True},
                after={"enabled": False},
                now=now,
            )
    return bool(moved)


def _drop_pending(webhook: Webhook, *, error: str) -> None:
    Delivery.objects.filter(webhook=webhook, state=DeliveryState.PENDING).update(
        state=DeliveryState.DROPPED, next_attempt_at=None, error=error[:300]
    )


def _check_url(url: str) -> None:
    if problem := _url_problem(url):
        raise InvalidInput({"url": problem})


def _url_problem(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not url.isascii() or any(each.isspace() for each in url):
        return _("Enter a URL such as https://example.org/lcm.")
    if parts.username is not None or parts.password is not None:
        return _("The URL must not contain a user name or password.")
    if parts.scheme == "https" or (parts.scheme == "http" and settings.CONFIG["WEBHOOK_ALLOWED_NETWORKS"]):
        return ""
    return _("The URL must start with https://. http is possible in networks of WEBHOOK_ALLOWED_NETWORKS.")
