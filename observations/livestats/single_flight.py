"""Short-lived cache in which one caller loads a value for all concurrent callers."""

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

# How long a cached value may replace one that cannot be loaded.
KEPT_SECONDS = 3600
POLL_SECONDS = 0.02
# Prefix of every key; increase the number when the format of cached values changes.
KEY_PREFIX = "livestats:3"


@dataclass(frozen=True)
class CachedValue(Generic[T]):
    at: float
    value: T


def cache_key(what: str, names: Iterable[object]) -> str:
    """Return the cache key of a query for these names."""
    digest = hashlib.sha256("\n".join(sorted(map(str, names))).encode()).hexdigest()
    return f"{KEY_PREFIX}:{what}:{digest}"


def load_once(key: str, load: Callable[[T | None], T], *, fresh: float, patience: float) -> T:
    """Return the cached value if it is fresh; otherwise one of the concurrent callers calls `load`.

    `load` receives the previous value, however old. Other callers wait for it up to `patience` seconds.
    Without a cache every caller loads its own value.
    """
    try:
        return _shared(key, load, fresh, patience)
    except (RedisError, OSError) as error:
        logger.warning("live_stats_cache_unavailable", extra={"error": str(error)})
        return load(None)


def _shared(key: str, load: Callable[[T | None], T], fresh: float, patience: float) -> T:
    requested_at = time.time()
    deadline = time.monotonic() + patience
    holder = uuid4().hex
    while True:
        kept: CachedValue[T] | None = cache.get(key)
        if kept is not None and (time.time() - kept.at < fresh or kept.at >= requested_at):
            return kept.value
        if cache.add(f"{key}:loading", holder, timeout=max(int(patience) + 1, 1)):
            break
        if time.monotonic() > deadline:
            return load(kept.value if kept else None)
        time.sleep(POLL_SECONDS)
    try:
        value = load(kept.value if kept else None)
        cache.set(key, CachedValue(time.time(), value), timeout=KEPT_SECONDS)
        return value
    finally:
        if cache.get(f"{key}:loading") == holder:
            cache.delete(f"{key}:loading")
