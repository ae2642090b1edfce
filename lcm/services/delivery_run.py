"""Send due deliveries to webhooks: endpoints in parallel, each with one request at a time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from threading import Thread
from uuid import UUID

from django.conf import settings

from lcm.events.webhook_body import CONTENT_TYPES
from lcm.events.webhook_client import EndpointClient
from lcm.events.webhook_secrets import signed_headers
from lcm.models import Delivery, Webhook, WebhookFormat
from lcm.services.deliveries import (
    Attempt,
    claim_webhook,
    held_deliveries,
    record_attempts,
    release_webhook,
)

ENDPOINTS_AT_ONCE = 32
# While endpoints respond, the run looks for due deliveries of others this often.
POLL_SECONDS = 0.5
# Deliveries are sent in chunks. LCM checks before a chunk that its deliveries may be sent, and stores their
# results after it. So after a webhook was disabled, requests may start for this long.
CHUNK = 25
CHUNK_SECONDS = 0.1
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
    client: EndpointClient


def deliver_due(*, clock: Clock) -> int:
    """Send what is due until nothing is; return the number of attempts."""
    stop = clock() + RUN_TIME
    first = _claim(clock, frozenset())
    if first is None:
        return 0
    with _event_loop() as loop:
        return _Run(clock, stop, loop).deliver(first)


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread. The block uses the database, the loop does not."""
    loop = asyncio.new_event_loop()
    # The lookup of a host name takes a thread until it ends, also after the time limit of its request.
    loop.set_default_executor(ThreadPoolExecutor(ENDPOINTS_AT_ONCE))
    thread = Thread(target=loop.run_forever, name="webhooks", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_finish(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _finish() -> None:
    """Wait for other tasks: connections that are being closed, and canceled requests."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks, timeout=POLL_SECONDS)


class _Run:
    def __init__(self, clock: Clock, stop: datetime, loop: asyncio.AbstractEventLoop) -> None:
        self.clock, self.stop, self.loop = clock, stop, loop
        self.sending: dict[Future[list[Attempt]], Claim] = {}
        self.attempts = 0
        self.looked = 0.0

    def deliver(self, first: Claim) -> int:
        try:
            self._send_next(first)
            self._claim_others()
            while self.sending:
                self._await_results()
        finally:
            # Only after an error, for example a lost database.
            for future in self.sending:
                future.cancel()
        return self.attempts

    def _await_results(self) -> None:
        done = wait(self.sending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done
        ended = sum(not self._record(future) for future in done)
        if ended or time.monotonic() - self.looked >= POLL_SECONDS:
            self._claim_others()

    def _claim_others(self) -> None:
        self.looked = time.monotonic()
        while len(self.sending) < ENDPOINTS_AT_ONCE and self.clock() < self.stop:
            busy = frozenset(claim.webhook.pk for claim in self.sending.values())
            claim = _claim(self.clock, busy)
            if claim is None:
                return
            self._send_next(claim)

    def _record(self, future: Future[list[Attempt]]) -> bool:
        """Store the results of a chunk and send the next one; return whether there is one."""
        claim, attempts = self.sending.pop(future), future.result()
        record_attempts(webhook=claim.webhook, attempts=attempts)
        self.attempts += len(attempts)
        return self._send_next(claim)

    def _send_next(self, claim: Claim) -> bool:
        """Start the next chunk of an endpoint, or release it."""
        chunk = list(islice(claim.waiting, CHUNK))
        if chunk and self.clock() < claim.until:
            held = held_deliveries(webhook=claim.webhook, deliveries=chunk)
            if len(held) == len(chunk):
                sent = asyncio.run_coroutine_threadsafe(_send_chunk(claim, self.clock), self.loop)
                self.sending[sent] = claim
                return True
        release_webhook(webhook=claim.webhook, unsent=claim.waiting)
        asyncio.run_coroutine_threadsafe(claim.client.close(), self.loop)
        return False


def _claim(clock: Clock, busy: frozenset[UUID]) -> Claim | None:
    now = clock()
    claimed = claim_webhook(now=now, busy=busy)
    if claimed is None:
        return None
    webhook, deliveries = claimed
    allowed, ca_file = settings.CONFIG["WEBHOOK_ALLOWED_NETWORKS"], settings.CONFIG["WEBHOOK_CA_FILE"]
    client = EndpointClient(webhook.url, allowed=allowed, ca_file=ca_file)
    return Claim(webhook, deque(deliveries), now + CLAIM_TIME, client)


async def _send_chunk(claim: Claim, clock: Clock) -> list[Attempt]:
    """Send deliveries until the chunk is complete, one fails, or `CHUNK_SECONDS` are over."""
    attempts: list[Attempt] = []
    end = time.monotonic() + CHUNK_SECONDS
    for _ in range(min(CHUNK, len(claim.waiting))):
        delivery = claim.waiting.popleft()
        headers = _headers(claim.webhook, delivery, clock())
        result = await claim.client.post(delivery.payload.encode(), headers)
        attempts.append(Attempt(delivery, result, clock()))
        if not result.is_delivered or time.monotonic() >= end:
            break
    return attempts


def _headers(webhook: Webhook, delivery: Delivery, now: datetime) -> dict[str, str]:
    return {
        "Content-Type": CONTENT_TYPES[WebhookFormat(webhook.format)],
        "User-Agent": "LCM",
        **signed_headers(webhook, message_id=str(delivery.pk), body=delivery.payload, now=now),
    }
