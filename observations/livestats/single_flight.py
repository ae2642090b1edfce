"""One answer for all who ask the same: kept for a moment, and asked for by one of them."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import uuid4

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
T = TypeVar("T")

# How long an answer may stand in for one that cannot be had.
KEPT_SECONDS = 3600
POLL_SECONDS = 0.02
# Beginning of every key; another number when what is kept changes its form.
KEY_PREFIX = "livestats:2"


@dataclass(frozen=True)
class CachedValue(Generic[T]):
    at: float
    value: T


def cache_key(what: str, names: Iterable[object]) -> str:
    """A key for the same question about the same things."""
    digest = hashlib.sha256("\n".join(sorted(map(str, names))).encode()).hexdigest()
    return f"{KEY_PREFIX}:{what}:{digest}"


def load_once(key: str, load: Callable[[T | None], T], *, fresh: float, patience: float) -> T:
    """The answer under this key if it is fresh enough; else `load` is called, by one of all who ask.

    `load` is given the answer of before, however old. Others wait for it as long as `patience`. Without
    a cache everybody asks for themselves.
    """
    try:
        return _shared(key, load, fresh, patience)
    except (RedisError, OSError) as error:
        logger.warning("live_stats_cache_unavailable", extra={"error": str(error)})
        return load(None)


def _shared(key: str, load: Callable[[T | None], T], fresh: float, patience: float) -> T:
    asked = time.time()
    deadline = time.monotonic() + patience
    holder = uuid4().hex
    while True:
        kept: CachedValue[T] | None = cache.get(key)
        if kept is not None and (time.time() - kept.at < fresh or kept.at >= asked):
            return kept.value
        if cache.add(f"{key}:asking", holder, timeout=max(int(patience) + 1, 1)):
            break
        if time.monotonic() > deadline:
            return load(kept.value if kept else None)
        time.sleep(POLL_SECONDS)
    try:
        value = load(kept.value if kept else None)
        cache.set(key, CachedValue(time.time(), value), timeout=KEPT_SECONDS)
        return value
    finally:
        if cache.get(f"{key}:asking") == holder:
            cache.delete(f"{key}:asking")
