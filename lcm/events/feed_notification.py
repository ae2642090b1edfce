"""Notifications through Redis about new feed entries. Watchers also poll, so a lost one only adds delay."""

from __future__ import annotations

import logging
import time
from functools import lru_cache

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

logger = logging.getLogger(__name__)

FEED_CHANNEL = "lcm:feed"
PAUSE_SECONDS = 5.0
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
