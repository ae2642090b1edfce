"""Notifications through Redis about new feed entries. Watchers also poll, so a lost one only adds delay."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Self

from django.conf import settings
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

logger = logging.getLogger(__name__)

FEED_CHANNEL = "lcm:feed"
PAUSE_SECONDS = 5.0
RECONNECT_SECONDS = 2.0
_paused_until = 0.0


def publish_feed_change() -> None:
    """Notify watchers of new feed entries. After a failure, skip notifications for `PAUSE_SECONDS`."""
    global _paused_until
    if time.monotonic() < _paused_until:
        return
    try:
        _client(settings.REDIS_URL).publish(FEED_CHANNEL, b"")
    except (RedisError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("publish_failed", extra={"error": str(error)})


@lru_cache(maxsize=1)
def _client(url: str) -> Redis:
    return Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5, retry=Retry(NoBackoff(), 1))


class FeedSubscription:
    """While open, calls `wake` for each message from Redis; `is_live` says whether it is connected."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.is_live = False
        self._wake = wake
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            try:
                await self._receive()
            except (RedisError, OSError) as error:
                self.is_live = False
                logger.warning("watch_subscription_lost", extra={"error": str(error)})
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _receive(self) -> None:
        client: Any = AsyncRedis.from_url(settings.REDIS_URL, socket_connect_timeout=2)
        try:
            async with client.pubsub() as channel:
                await channel.subscribe(FEED_CHANNEL)
                _raise_if_cancelled()
                self.is_live = True
                # Messages published before the subscription were missed.
                self._wake()
                async for message in channel.listen():
                    if message["type"] == "message":
                        self._wake()
        finally:
            self.is_live = False
            await client.aclose()


def _raise_if_cancelled() -> None:
    """Re-raise a cancellation that redis-py swallows while connecting; otherwise the task would never end."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
