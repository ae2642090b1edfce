"""Claim, record, retry, test and remove deliveries. `mail_delivery.py` claims and records e-mails."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from lcm.db.bulk import delete_in_batches
from lcm.domain.actors import Actor
from lcm.domain.errors import StateConflict
from lcm.events.catalog import event_types, example_event
from lcm.events.mail_client import mail_is_configured
from lcm.events.webhook_body import request_body
from lcm.events.webhook_client import SendResult
from lcm.models import Channel, Delivery, DeliveryAttempt, DeliveryState, EventRule, Webhook
from lcm.monitoring.metrics import DELIVERY_ATTEMPTS
from lcm.selectors.recipients import People, role_named
from lcm.services.changelog import log_change
from lcm.services.event_routing import RETRY_PERIOD, rule_deliveries, set_event
from lcm.services.validation import require_reason
from lcm.services.webhooks import WAS_DISABLED, disable_webhook

logger = logging.getLogger(__name__)

# A worker sends at most this many deliveries to an endpoint, one after the other, before others may claim it.
BATCH = 100
# Must exceed the time that a worker sends in one claim and the limit of one request.
LEASE = timedelta(seconds=60)
# Pauses after the first attempts; later pauses are as long as the last one.
BACKOFF_SECONDS = (5, 30, 120, 600, 3600)
JITTER = 0.2
MAX_RETRY_AFTER_SECONDS = 3600.0
FAILING_LIMIT = timedelta(hours=24)
RETENTION = timedelta(days=30)
MAIL_NOT_CONFIGURED = gettext_lazy("E-mail is not configured. Set EMAIL_URL first.")


@dataclass(frozen=True)
class Attempt:
    """A request for a delivery, its result, and when it ended."""

    delivery: Delivery
    result: SendResult
    at: datetime


def claim_webhook(
    *, now: datetime, busy: frozenset[UUID] = frozenset()
) -> tuple[Webhook, list[Delivery]] | None:
    """Take the lease of an endpoint with due deliveries; return it with these; None if there is none."""
    due = Delivery.objects.filter(
        webhook=OuterRef("pk"), state=DeliveryState.PENDING, next_attempt_at__lte=now
    )
    free = Webhook.objects.filter(_is_free(now), Exists(due), enabled=True).exclude(pk__in=busy)
    # In random order, so that no endpoint waits for ever if more are due than a worker serves.
    for key in free.order_by("?").values_list("pk", flat=True):
        if claim := _claim(key, now):
            return claim
    return None


def _is_free(now: datetime) -> Q:
    return Q(leased_until=None) | Q(leased_until__lte=now)


def _claim(webhook_id: UUID, now: datetime) -> tuple[Webhook, list[Delivery]] | None:
    lease = now + LEASE
    with transaction.atomic():
        if not Webhook.objects.filter(_is_free(now), pk=webhook_id, enabled=True).update(leased_until=lease):
            return None
        due = Delivery.objects.filter(
            webhook=webhook_id, state=DeliveryState.PENDING, next_attempt_at__lte=now
        )
        claimed = list(due.order_by("next_attempt_at", "event", "pk")[:BATCH])
        due.filter(pk__in=[row.pk for row in claimed]).update(next_attempt_at=lease)
        webhook = Webhook.objects.get(pk=webhook_id)
    return webhook, claimed


def held_deliveries(*, webhook: Webhook, deliveries: Sequence[Delivery]) -> set[UUID]:
    """Return the deliveries of a claim that may be sent.

    Others were deleted, dropped or claimed again, or the webhook was changed after the claim.
    """
    held = _held(deliveries, webhook.leased_until).filter(
        webhook__url=webhook.url, webhook__salt=webhook.salt
    )
    return set(held.values_list("pk", flat=True))


def _held(deliveries: Iterable[Delivery], lease: datetime | None) -> QuerySet[Delivery]:
    """Return the rows that still have the lease of the claim."""
    return Delivery.objects.filter(
        pk__in=[each.pk for each in deliveries], state=DeliveryState.PENDING, next_attempt_at=lease
    )


def release_webhook(*, webhook: Webhook, unsent: Iterable[Delivery]) -> None:
    """End the lease; deliveries that were not sent are due at their time before the claim."""
    by_time: dict[datetime | None, list[Delivery]] = {}
    for delivery in unsent:
        by_time.setdefault(delivery.next_attempt_at, []).append(delivery)
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk, leased_until=webhook.leased_until).update(leased_until=None)
        for due_at, rows in by_time.items():
            _held(rows, webhook.leased_until).update(next_attempt_at=due_at)


def record_attempts(*, webhook: Webhook, attempts: Sequence[Attempt]) -> None:
    """Store the results of requests, and when the next ones are due."""
    with transaction.atomic():
        # The webhook is locked before its deliveries, as everywhere.
        stored = Webhook.objects.select_for_update(no_key=True).filter(pk=webhook.pk).first()
        valid = store_attempts(attempts, lease=webhook.leased_until)
        if stored and valid:
            has_success = any(each.result.is_delivered for each in valid)
            _update_health(stored, valid[-1], has_success=has_success)


def store_attempts(attempts: Sequence[Attempt], *, lease: datetime | None) -> list[Attempt]:
    """Store attempts of a claim; return those whose delivery still had its lease."""
    held = set(
        _held([each.delivery for each in attempts], lease).select_for_update().values_list("pk", flat=True)
    )
    valid = [each for each in attempts if each.delivery.pk in held]
    delivered = [each.delivery for each in valid if each.result.is_delivered]
    _held(delivered, lease).update(
        state=DeliveryState.DELIVERED,
        next_attempt_at=None,
        error="",
        attempt_count=F("attempt_count") + 1,
    )
    # The same for all, because the deliveries of an e-mail are retried as one e-mail.
    jitter = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
    for each in valid:
        if not each.result.is_delivered:
            failure = _failure(each.delivery, each.result, each.at, jitter)
            _held([each.delivery], lease).update(**failure, attempt_count=F("attempt_count") + 1)
    DeliveryAttempt.objects.bulk_create(_attempt_row(each) for each in valid)
    for each in valid:
        outcome = "delivered" if each.result.is_delivered else "failed"
        DELIVERY_ATTEMPTS.labels(channel=each.delivery.channel, result=outcome).inc()
    return valid


def _attempt_row(attempt: Attempt) -> DeliveryAttempt:
    return DeliveryAttempt(
        delivery=attempt.delivery,
        at=attempt.at,
        duration_ms=attempt.result.duration_ms,
        status=attempt.result.status,
        error=attempt.result.error,
        response=attempt.result.response,
    )


def _failure(delivery: Delivery, result: SendResult, now: datetime, jitter: float) -> dict[str, object]:
    after = now + timedelta(seconds=_pause_seconds(delivery.attempt_count, result, jitter))
    if result.is_final or after >= delivery.retry_until:
        return {"state": DeliveryState.FAILED, "next_attempt_at": None, "error": result.error}
    return {"next_attempt_at": after, "error": result.error}


def _pause_seconds(attempts: int, result: SendResult, jitter: float) -> float:
    pause = BACKOFF_SECONDS[min(attempts, len(BACKOFF_SECONDS) - 1)] * jitter
    return max(pause, min(result.retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))


def _update_health(webhook: Webhook, last: Attempt, *, has_success: bool) -> None:
    """Record since when the endpoint fails; disable it if it is gone or has failed for too long."""
    result, now = last.result, last.at
    if result.is_delivered:
        _set_failing_since(webhook, None)
        return
    before = None if has_success else webhook.failing_since
    since = before or now
    # A test has one attempt, so its failure says nothing about the following hours.
    _set_failing_since(webhook, before if last.delivery.event is None else since)
    logger.warning(
        "webhook_attempt_failed",
        extra={"webhook": webhook.name, "status": result.status, "error": result.error},
    )
    if result.is_final:
        disable_webhook(webhook=webhook, reason="the endpoint responded 410 Gone", now=now)
    elif now - since >= FAILING_LIMIT:
        disable_webhook(webhook=webhook, reason="every attempt of the last 24 hours failed", now=now)


def _set_failing_since(webhook: Webhook, since: datetime | None) -> None:
    if webhook.failing_since != since:
        webhook.failing_since = since
        webhook.save(update_fields=["failing_since"])


def retry_delivery(*, delivery: Delivery, reason: str, actor: Actor, now: datetime) -> Delivery:
    """Send a delivery again, whatever its result; raise StateConflict if it is pending."""
    require_reason(reason)
    with transaction.atomic():
        _require_target(delivery)
        ended = Delivery.objects.filter(pk=delivery.pk).exclude(state=DeliveryState.PENDING)
        if not ended.update(
            state=DeliveryState.PENDING, next_attempt_at=now, retry_until=now + RETRY_PERIOD, error=""
        ):
            raise StateConflict(_("The delivery is pending already."))
        log_change(
            delivery,
            actor=actor,
            event="delivery.retried",
            message=f"delivery {delivery} retried",
            reason=reason,
            now=now,
        )
    delivery.refresh_from_db()
    return delivery


def can_retry() -> Q:
    """Return the condition for deliveries that can be sent again."""
    targets = Q(webhook__enabled=True)
    if mail_is_configured():
        targets |= Q(channel=Channel.EMAIL) & ~Q(address="")
    return ~Q(state=DeliveryState.PENDING) & targets


def _require_target(delivery: Delivery) -> None:
    """Raise StateConflict if LCM cannot send to the target of a delivery."""
    if delivery.channel == Channel.INBOX:
        raise StateConflict(_("An entry of an inbox is not sent. It is there already."))
    if delivery.webhook_id:
        _require_enabled(Webhook.objects.select_for_update().get(pk=delivery.webhook_id))
    elif not mail_is_configured():
        raise StateConflict(str(MAIL_NOT_CONFIGURED))
    elif not delivery.address:
        raise StateConflict(_("The recipient had no e-mail address."))


def send_test(*, webhook: Webhook, event_type: str, actor: Actor, now: datetime) -> Delivery:
    """Enqueue the example of an event type as a delivery."""
    _require_enabled(webhook)
    return Delivery.objects.create(
        type=event_type,
        webhook=webhook,
        payload=request_body(example_event(event_types()[event_type]), webhook.format),
        next_attempt_at=now,
        retry_until=now,
        created_at=now,
    )


def send_rule_test(*, rule: EventRule, event_type: str, actor: Actor, now: datetime) -> list[Delivery]:
    """Send the example of an event type to everybody whom the rule notifies, without retries."""
    if rule.webhook:
        _require_enabled(rule.webhook)
    if rule.channel == Channel.EMAIL and not mail_is_configured():
        raise StateConflict(str(MAIL_NOT_CONFIGURED))
    people = People(
        names=rule.recipients, roles={role for text in rule.recipients if (role := role_named(text))}
    )
    event = example_event(event_types()[event_type])
    deliveries = list(rule_deliveries(rule, people.of_rule(rule), now))
    if not deliveries:
        raise StateConflict(_("The rule has no recipient with an open account."))
    for delivery in deliveries:
        set_event(delivery, event_type, event)
        delivery.retry_until = now
        if delivery.state == DeliveryState.PENDING:
            delivery.next_attempt_at = now
    return Delivery.objects.bulk_create(deliveries)


def _require_enabled(webhook: Webhook) -> None:
    if not webhook.enabled:
        raise StateConflict(_("The webhook %(webhook)s is disabled. Enable it first.") % {"webhook": webhook})


def remove_old_deliveries(*, now: datetime) -> int:
    """Remove finished deliveries older than `RETENTION`; return how many.

    Drop deliveries that were routed while their webhook was being disabled, too.
    """
    late = Delivery.objects.filter(state=DeliveryState.PENDING, webhook__enabled=False)
    late.update(state=DeliveryState.DROPPED, next_attempt_at=None, error=WAS_DISABLED)
    old = Delivery.objects.filter(created_at__lt=now - RETENTION).exclude(state=DeliveryState.PENDING)
    return delete_in_batches(old, 5_000)
