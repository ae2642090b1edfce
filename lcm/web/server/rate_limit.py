"""Rate limits with fixed windows, counted in Redis. Without Redis there is no limit."""

from __future__ import annotations

import hashlib
import logging
import time

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from redis.exceptions import RedisError

from lcm.config.setting_types import parse_rate
from lcm.web.server.client_address import client_address
from lcm.web.server.known_browser import known_browser

logger = logging.getLogger(__name__)
# Number of user names with failures per address: behind a proxy, all users share one address.
NAMES_PER_ADDRESS = 10


def count_call(name: str, setting: str) -> float | None:
    """Count a call; return the seconds to wait if the limit of this window is exceeded, else None."""
    limit, period = parse_rate(settings.CONFIG[setting])
    used, left = _count(name, period, step=1)
    return left if used > limit else None


def seconds_until_retry(request: HttpRequest, *, name: str | None = None) -> float | None:
    """Return the seconds to wait after too many wrong tokens, or passwords for a name, else None."""
    limit, period = parse_rate(settings.CONFIG["LOGIN_FAILURE_RATE"])
    for key, times in _failures(request, name).items():
        used, left = _count(key, period, step=0)
        if used >= limit * times:
            return left
    return None


def record_failure(request: HttpRequest, *, name: str | None = None) -> None:
    """Count a wrong token, or a wrong password for that name, from this address."""
    for key in _failures(request, name):
        count_call(key, "LOGIN_FAILURE_RATE")


def _failures(request: HttpRequest, name: str | None) -> dict[str, int]:
    """Return the counters of a failure, each with its multiple of the rate."""
    address = client_address(request)
    if name is None:
        return {f"login:{address}": 1}
    if browser := known_browser(request, name):
        return {f"password:browser:{browser}": 1}
    name_hash = hashlib.sha256(name.encode()).hexdigest()
    return {f"password:{address}:{name_hash}": 1, f"password:{address}": NAMES_PER_ADDRESS}


def _count(name: str, period: int, *, step: int) -> tuple[int, float]:
    """Return the number of calls in the current window and the seconds until it ends."""
    now = time.time()
    window = int(now // period)
    left = (window + 1) * period - now
    key = f"throttle:{name}:{window}"
    try:
        if step == 0:
            return int(cache.get(key, 0)), left
        return _increment(key, step, period), left
    except (RedisError, OSError, ValueError) as error:
        logger.warning("rate_limit_unavailable", extra={"error": str(error)})
        return 0, left


def _increment(key: str, step: int, period: int) -> int:
    """Increment a counter; INCR comes first because most calls are not the first of their window."""
    try:
        return cache.incr(key, step)
    except ValueError:
        return step if cache.add(key, step, timeout=period + 1) else cache.incr(key, step)
