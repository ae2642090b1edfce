"""Redis subscription that reports new changes in the feed and reconnects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Self

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from lcm.events.feed_notification import FEED_CHANNEL

logger = logging.getLogger(__name__)

RETRY_SECONDS = 2.0


class Subscription:
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
                await self._hear()
            except (RedisError, OSError) as error:
                self.is_live = False
                logger.warning("watch_subscription_lost", extra={"error": str(error)})
            await asyncio.sleep(RETRY_SECONDS)

    async def _hear(self) -> None:
        client: Any = Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2)
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
