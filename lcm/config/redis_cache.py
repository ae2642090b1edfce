"""Django's Redis cache with a client that is kept, and a counter that goes there once."""

from __future__ import annotations

from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis

_INCREASE = "if redis.call('exists', KEYS[1]) == 1 then return redis.call('incrby', KEYS[1], ARGV[1]) end"


class PersistentCacheClient(RedisCacheClient):
    """Django makes a client for each command, which takes longer than the command."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._kept: dict[Any, Redis] = {}

    def get_client(self, key: Any = None, *, write: bool = False) -> Redis:
        pool = self._get_connection_pool(write)  # type: ignore[attr-defined]
        return self._kept.get(pool) or self._kept.setdefault(pool, super().get_client(key, write=write))

    def incr(self, key: Any, delta: int) -> int:
        """One way there instead of two; as Django has it, only what is there is counted."""
        found: int | None = self.get_client(key, write=True).eval(_INCREASE, 1, key, delta)
        if found is None:
            raise ValueError(f"Key “{key}” not found.")
        return found


class PersistentRedisCache(RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = PersistentCacheClient
