"""Claim and record e-mails: the due deliveries of one rule to one address are one message."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from lcm.events.mail_client import mail_is_configured
from lcm.events.webhook_client import SendResult
from lcm.models import PERSONAL, Channel, Delivery, DeliveryState
from lcm.services.deliveries import LEASE, Attempt, store_attempts
from lcm.services.event_routing import NO_MAIL

logger = logging.getLogger(__name__)

# Further events of the same rule are another message.
EVENTS_IN_A_MESSAGE = 50


def due_mails(*, now: datetime) -> QuerySet[Delivery]:
    # Without a webhook, for the index of due deliveries.
    return Delivery.objects.filter(
        channel=Channel.EMAIL, webhook=None, state=DeliveryState.PENDING, next_attempt_at__lte=now
    )


def claim_mail(*, now: datetime) -> list[Delivery]:
    """Claim the deliveries of one message until the end of a lease; return none if no e-mail is due."""
    due = due_mails(now=now)
    if not mail_is_configured():
        due.update(state=DeliveryState.DROPPED, next_attempt_at=None, error=NO_MAIL)
        return []
    with transaction.atomic():
        free = due.select_for_update(skip_locked=True).order_by("next_attempt_at", "event", "pk")
        first = free.first()
        if first is None:
            return []
        same = free.filter(rule=first.rule_id, address=first.address)
        is_personal = first.cause in PERSONAL
        same = same.filter(cause__in=PERSONAL) if is_personal else same.exclude(cause__in=PERSONAL)
        keys = list(same.order_by("event", "pk").values_list("pk", flat=True)[:EVENTS_IN_A_MESSAGE])
        lease = now + LEASE
        Delivery.objects.filter(pk__in=keys).update(next_attempt_at=lease)
    claimed = Delivery.objects.filter(pk__in=keys, next_attempt_at=lease).select_related("rule", "recipient")
    return list(claimed.order_by("event", "pk"))


def record_mail(*, deliveries: Sequence[Delivery], result: SendResult, now: datetime) -> None:
    """Store the result of a message at each of its deliveries."""
    if not result.is_delivered:
        logger.warning(
            "mail_attempt_failed",
            extra={"delivery": str(deliveries[0].pk), "status": result.status, "error": result.error},
        )
    attempts = [Attempt(delivery, result, now) for delivery in deliveries]
    with transaction.atomic():
        store_attempts(attempts, lease=deliveries[0].next_attempt_at)
