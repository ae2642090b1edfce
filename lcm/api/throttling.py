"""How often a caller may call. Counted in Redis; when that is down, nobody is locked out."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

if TYPE_CHECKING:
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)
_SECONDS = {"sec": 1, "min": 60, "hour": 3600, "day": 86400}


def parse_rate(text: str) -> tuple[int, int]:
    """`600/min` → 600 calls in 60 seconds."""
    number, _, period = text.partition("/")
    if not number.isdigit() or int(number) < 1 or period not in _SECONDS:
        raise ValueError(f"“{text}” is not a rate; write for example 600/min")
    return int(number), _SECONDS[period]


class PrincipalThrottle(BaseThrottle):
    """A window of fixed length for each person or token."""

    left: float = 0

    def allow_request(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return True
        limit, period = parse_rate(settings.CONFIG["API_RATE"])
        used, self.left = _count(f"api:{request.user.pk}", period)
        return used <= limit

    def wait(self) -> float:
        return self.left


def refuse_after_failures(request: Request) -> None:
    """Stop guessing: too many wrong tokens from one address."""
    limit, period = parse_rate(settings.CONFIG["API_LOGIN_RATE"])
    used, left = _count(f"login:{_address(request)}", period, step=0)
    if used >= limit:
        raise Throttled(wait=left)


def note_failed_login(request: Request) -> None:
    _, period = parse_rate(settings.CONFIG["API_LOGIN_RATE"])
    _count(f"login:{_address(request)}", period)


def _count(name: str, period: int, step: int = 1) -> tuple[int, float]:
    """Calls counted in the present window, and the seconds until it ends."""
    now = time.time()
    window = int(now // period)
    left = (window + 1) * period - now
    key = f"throttle:{name}:{window}"
    try:
        if step == 0:
            return int(cache.get(key, 0)), left
        if cache.add(key, step, timeout=period + 1):
            return step, left
        return cache.incr(key, step), left
    except (RedisError, OSError, ValueError) as error:
        logger.warning("throttle_unavailable", extra={"error": str(error)})
        return 0, left


def _address(request: Request) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))
