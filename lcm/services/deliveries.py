"""Claim, record, retry, test and remove deliveries."""

from __future__ import annotations

import logging
import random
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from lcm.db.bulk import delete_in_batches
from lcm.domain.actors import Actor
from lcm.domain.errors import StateConflict
from lcm.events.catalog import event_types, example_event
from lcm.events.webhook_body import request_body
from lcm.events.webhook_client import SendResult
from lcm.models import Delivery, DeliveryAttempt, DeliveryState, EventRule, Webhook
from lcm.monitoring.metrics import WEBHOOK_ATTEMPTS
from lcm.services.changelog import log_change
from lcm.services.event_routing import RETRY_PERIOD
from lcm.services.validation import require_reason
from lcm.services.webhooks import disable_webhook

logger = logging.getLogger(__name__)

# A worker sends at most this many deliveries to an endpoint, one after the other, before others may claim it.
BATCH = 50
# Must exceed the time that a worker sends in one claim and the limit of one request.
LEASE = timedelta(seconds=120)
# Pauses after the first attempts; later pauses are as long as the last one.
BACKOFF_SECONDS = (5, 30, 120, 600, 3600)
JITTER = 0.2
MAX_RETRY_AFTER_SECONDS = 3600.0
FAILING_LIMIT = timedelta(hours=24)
GONE = 410
RETENTION = timedelta(days=30)


def claim_webhook(
    *, now: datetime, busy: frozenset[UUID] = frozenset()
) -> tuple[Webhook, list[Delivery]] | None:
    """Take the lease of an endpoint with due deliveries; return it with these; None if there is none."""
    due = Delivery.objects.filter(state=DeliveryState.PENDING, next_attempt_at__lte=now).order_by()
    for key in due.exclude(webhook__in=busy).values_list("webhook", flat=True).distinct():
        if claim := _claim(key, now):
            return claim
    return None


def _claim(webhook_id: UUID, now: datetime) -> tuple[Webhook, list[Delivery]] | None:
    lease = now + LEASE
    free = Q(leased_until=None) | Q(leased_until__lte=now)
    with transaction.atomic():
        if not Webhook.objects.filter(free, pk=webhook_id, enabled=True).update(leased_until=lease):
            return None
        due = Delivery.objects.filter(
            webhook=webhook_id, state=DeliveryState.PENDING, next_attempt_at__lte=now
        )
        keys = list(due.order_by("next_attempt_at", "event", "pk").values_list("pk", flat=True)[:BATCH])
        due.filter(pk__in=keys).update(next_attempt_at=lease)
        claimed = {row.pk: row for row in Delivery.objects.filter(pk__in=keys, next_attempt_at=lease)}
    webhook = Webhook.objects.get(pk=webhook_id)
    return webhook, [claimed[key] for key in keys if key in claimed]


def is_claimed(delivery: Delivery) -> bool:
    """Return whether the claim still holds: the delivery exists and was neither taken again nor dropped."""
    return Delivery.objects.filter(
        pk=delivery.pk, state=DeliveryState.PENDING, next_attempt_at=delivery.next_attempt_at
    ).exists()


def release_webhook(*, webhook: Webhook, unsent: list[Delivery], now: datetime) -> None:
    """End the lease; deliveries that were not sent are due again."""
    with transaction.atomic():
        for delivery in unsent:
            Delivery.objects.filter(
                pk=delivery.pk, state=DeliveryState.PENDING, next_attempt_at=delivery.next_attempt_at
            ).update(next_attempt_at=now)
        Webhook.objects.filter(pk=webhook.pk, leased_until=webhook.leased_until).update(leased_until=None)


def record_attempt(*, webhook: Webhook, delivery: Delivery, result: SendResult, now: datetime) -> None:
    """Store the result of an attempt, and when the next one is due."""
    WEBHOOK_ATTEMPTS.labels(result="delivered" if result.is_delivered else "failed").inc()
    with transaction.atomic():
        held = Delivery.objects.filter(
            pk=delivery.pk, state=DeliveryState.PENDING, next_attempt_at=delivery.next_attempt_at
        )
        if not held.update(**_outcome(delivery, result, now), attempt_count=F("attempt_count") + 1):
            return
        DeliveryAttempt.objects.create(
            delivery=delivery,
            at=now,
            duration_ms=result.duration_ms,
            status=result.status,
            error=result.error[:300],
            response=result.response,
        )
        _update_health(webhook, result, now)


def _outcome(delivery: Delivery, result: SendResult, now: datetime) -> dict[str, object]:
    if result.is_delivered:
        return {"state": DeliveryState.DELIVERED, "next_attempt_at": None, "error": ""}
    error = result.error[:300]
    after = now + timedelta(seconds=_pause_seconds(delivery.attempt_count, result))
    if result.status == GONE or after >= delivery.retry_until:
        return {"state": DeliveryState.FAILED, "next_attempt_at": None, "error": error}
    return {"next_attempt_at": after, "error": error}


def _pause_seconds(attempts: int, result: SendResult) -> float:
    pause = BACKOFF_SECONDS[min(attempts, len(BACKOFF_SECONDS) - 1)] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
    return max(pause, min(result.retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))


def _update_health(webhook: Webhook, result: SendResult, now: datetime) -> None:
    """Record since when the endpoint fails; disable it if it is gone or has failed for too long."""
    if result.is_delivered:
        Webhook.objects.filter(pk=webhook.pk, failing_since__isnull=False).update(failing_since=None)
        return
    Webhook.objects.filter(pk=webhook.pk, failing_since=None).update(failing_since=now)
    logger.warning(
        "webhook_attempt_failed",
        extra={"webhook": webhook.name, "status": result.status, "error": result.error},
    )
    if result.status == GONE:
        disable_webhook(webhook=webhook, reason="the endpoint responded 410 Gone", now=now)
    elif Webhook.objects.filter(pk=webhook.pk, failing_since__lte=now - FAILING_LIMIT).exists():
        disable_webhook(webhook=webhook, reason="every attempt of the last 24 hours failed", now=now)


def retry_delivery(*, delivery: Delivery, reason: str, actor: Actor, now: datetime) -> Delivery:
    """Send a delivery again, whatever its result; raise StateConflict if it is pending."""
    require_reason(reason)
    with transaction.atomic():
        webhook = Webhook.objects.select_for_update().get(pk=delivery.webhook_id)
        _require_enabled(webhook)
        ended = Delivery.objects.filter(pk=delivery.pk).exclude(state=DeliveryState.PENDING)
        if not ended.update(
            state=DeliveryState.PENDING, next_attempt_at=now, retry_until=now + RETRY_PERIOD, error=""
        ):
            raise StateConflict(_("The delivery is pending already."))
        log_change(
            webhook,
            actor=actor,
            event="webhook.delivery_retried",
            message=f"delivery {delivery} retried",
            reason=reason,
            now=now,
        )
    delivery.refresh_from_db()
    return delivery


def send_test(
    *, webhook: Webhook, event_type: str, rule: EventRule | None = None, actor: Actor, now: datetime
) -> Delivery:
    """Enqueue the example of an event type as a delivery."""
    _require_enabled(webhook)
    return Delivery.objects.create(
        type=event_type,
        rule=rule,
        webhook=webhook,
        payload=request_body(example_event(event_types()[event_type]), webhook.format),
        next_attempt_at=now,
        retry_until=now,
        created_at=now,
    )


def _require_enabled(webhook: Webhook) -> None:
    if not webhook.enabled:
        raise StateConflict(_("The webhook %(webhook)s is disabled. Enable it first.") % {"webhook": webhook})


def remove_old_deliveries(*, now: datetime) -> int:
    """Remove finished deliveries older than `RETENTION`; return how many."""
    old = Delivery.objects.filter(created_at__lt=now - RETENTION).exclude(state=DeliveryState.PENDING)
    return delete_in_batches(old, 5_000)
