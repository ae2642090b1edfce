"""Skip Prometheus after an outage, so that a hanging server costs one timeout instead of one per page."""

from __future__ import annotations

import hashlib
import logging
import math
import time
from dataclasses import dataclass

from django.core.cache import cache
from redis.exceptions import RedisError

from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.single_flight import KEPT_SECONDS, KEY_PREFIX

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 20.0


@dataclass(frozen=True)
class Outage:
    """Why Prometheus is skipped, and until when."""

    until: float
    reason: str


def skip_reason(options: PrometheusSettings) -> str:
    """Return why Prometheus is not queried now; empty if the caller may query it.

    After the pause one caller, of all processes that share the cache, may query it. The others skip
    Prometheus until that caller has reported the result.
    """
    key = _key(options)
    try:
        outage: Outage | None = cache.get(key)
        if outage is None:
            return ""
        is_paused = time.time() < outage.until
        if not is_paused and cache.add(f"{key}:probe", True, timeout=math.ceil(options.timeout) + 1):
            return ""
    except (RedisError, OSError) as error:
        _warn(error)
        return ""
    return outage.reason


def note_outage(options: PrometheusSettings, reason: str) -> None:
    """Skip Prometheus for a while, because it did not respond."""
    key = _key(options)
    text = f"{reason}; LCM retries after {PAUSE_SECONDS:g} s"
    try:
        cache.set(key, Outage(time.time() + PAUSE_SECONDS, text), timeout=KEPT_SECONDS)
        cache.delete(f"{key}:probe")
    except (RedisError, OSError) as error:
        _warn(error)


def end_outage(options: PrometheusSettings) -> None:
    """End the outage: Prometheus responded or refused the connection at once."""
    key = _key(options)
    try:
        cache.delete_many([key, f"{key}:probe"])
    except (RedisError, OSError) as error:
        _warn(error)


def _key(options: PrometheusSettings) -> str:
    return f"{KEY_PREFIX}:outage:{hashlib.sha256(options.url.encode()).hexdigest()}"


def _warn(error: Exception) -> None:
    logger.warning("live_stats_cache_unavailable", extra={"error": str(error)})
