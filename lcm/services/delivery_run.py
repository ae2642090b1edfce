"""Send due deliveries: endpoints in parallel, the deliveries of one endpoint one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from lcm.events.webhook_body import CONTENT_TYPES
from lcm.events.webhook_client import SendResult, send_request
from lcm.events.webhook_secrets import signed_headers
from lcm.models import Delivery, Webhook, WebhookFormat
from lcm.services.deliveries import claim_webhook, is_claimed, record_attempt, release_webhook

ENDPOINTS_AT_ONCE = 32
# While slow endpoints respond, the run looks for due deliveries of others this often.
POLL_SECONDS = 0.5
# A run starts no further requests to an endpoint, and claims no endpoint, after this time.
CLAIM_TIME = timedelta(seconds=20)
RUN_TIME = timedelta(seconds=45)

Clock = Callable[[], datetime]


@dataclass
class Claim:
    """An endpoint with the deliveries that this run sends to it."""

    webhook: Webhook
    waiting: deque[Delivery]
    until: datetime


def deliver_due(*, clock: Clock) -> int:
    """Send what is due until nothing is; return the number of attempts.

    Threads only send; this thread uses the database.
    """
    stop = clock() + RUN_TIME
    sending: dict[Future[SendResult], tuple[Claim, Delivery]] = {}
    attempts = 0
    with ThreadPoolExecutor(ENDPOINTS_AT_ONCE) as threads:
        while True:
            while len(sending) < ENDPOINTS_AT_ONCE and clock() < stop and (claim := _claim(clock, sending)):
                _send_next(claim, threads, sending, clock)
            if not sending:
                return attempts
            for future in wait(sending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done:
                claim, delivery = sending.pop(future)
                record_attempt(webhook=claim.webhook, delivery=delivery, result=future.result(), now=clock())
                attempts += 1
                _send_next(claim, threads, sending, clock)


def _claim(clock: Clock, sending: dict[Future[SendResult], tuple[Claim, Delivery]]) -> Claim | None:
    now = clock()
    busy: frozenset[UUID] = frozenset(claim.webhook.pk for claim, _ in sending.values())
    claimed = claim_webhook(now=now, busy=busy)
    return Claim(claimed[0], deque(claimed[1]), now + CLAIM_TIME) if claimed else None


def _send_next(
    claim: Claim,
    threads: ThreadPoolExecutor,
    sending: dict[Future[SendResult], tuple[Claim, Delivery]],
    clock: Clock,
) -> None:
    """Start the next request to an endpoint, or release it."""
    while claim.waiting and clock() < claim.until:
        delivery = claim.waiting.popleft()
        if is_claimed(delivery):
            sending[threads.submit(_send, claim.webhook, delivery, clock())] = (claim, delivery)
            return
    release_webhook(webhook=claim.webhook, unsent=list(claim.waiting), now=clock())


def _send(webhook: Webhook, delivery: Delivery, now: datetime) -> SendResult:
    headers = {
        "Content-Type": CONTENT_TYPES[WebhookFormat(webhook.format)],
        "User-Agent": "LCM",
        **signed_headers(webhook, message_id=str(delivery.pk), body=delivery.payload, now=now),
    }
    allowed = settings.CONFIG["WEBHOOK_ALLOWED_NETWORKS"]
    return send_request(webhook.url, body=delivery.payload.encode(), headers=headers, allowed=allowed)
