"""Counting calls in windows of time. Counted in Redis; when that is down, nobody is locked out."""

from __future__ import annotations

import logging
import time
from functools import lru_cache

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
_SECONDS = {"sec": 1, "min": 60, "hour": 3600, "day": 86400}


@lru_cache(maxsize=64)
def parse_rate(text: str) -> tuple[int, int]:
    """`600/min` → 600 calls in 60 seconds."""
    number, _, period = text.partition("/")
    if not number.isdecimal() or int(number) < 1 or period not in _SECONDS:
        raise ValueError(f"“{text}” is not a rate; write for example 600/min")
    return int(number), _SECONDS[period]


def count(name: str, setting: str) -> float | None:
    """Count a call; the seconds to wait when there were too many in this window, else nothing."""
    limit, period = parse_rate(settings.CONFIG[setting])
    used, left = _counted(name, period, step=1)
    return left if used > limit else None


def wait_after_failures(request: HttpRequest) -> float | None:
    """The seconds until this address may try to log in again, when it has failed too often."""
    limit, period = parse_rate(settings.CONFIG["API_LOGIN_RATE"])
    used, left = _counted(_failures(request), period, step=0)
    return left if used >= limit else None


def note_failure(request: HttpRequest) -> None:
    """A wrong token or password came from this address."""
    count(_failures(request), "API_LOGIN_RATE")


def _failures(request: HttpRequest) -> str:
    return f"login:{request.META.get('REMOTE_ADDR', '')}"


def _counted(name: str, period: int, *, step: int) -> tuple[int, float]:
    """Calls in the present window, and the seconds until it ends."""
    now = time.time()
    window = int(now // period)
    left = (window + 1) * period - now
    key = f"throttle:{name}:{window}"
    try:
        if step == 0:
            return int(cache.get(key, 0)), left
        return _increased(key, step, period), left
    except (RedisError, OSError, ValueError) as error:
        logger.warning("throttle_unavailable", extra={"error": str(error)})
        return 0, left


def _increased(key: str, step: int, period: int) -> int:
    """Most calls are not the first of their window."""
    try:
        return cache.incr(key, step)
    except ValueError:
        return step if cache.add(key, step, timeout=period + 1) else cache.incr(key, step)
