"""Django's Redis cache with a persistent client and an increment in one round trip."""

from __future__ import annotations

from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis

_INCREMENT_IF_EXISTS = (
    "if redis.call('exists', KEYS[1]) == 1 then return redis.call('incrby', KEYS[1], ARGV[1]) end"
)


class PersistentCacheClient(RedisCacheClient):
    """Cache client that reuses its Redis client; creating one per command takes longer than the command."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._clients: dict[Any, Redis] = {}

    def get_client(self, key: Any = None, *, write: bool = False) -> Redis:
        pool = self._get_connection_pool(write)  # type: ignore[attr-defined]
        return self._clients.get(pool) or self._clients.setdefault(pool, super().get_client(key, write=write))

    def incr(self, key: Any, delta: int) -> int:
        """Increment in one round trip; like Django, raise ValueError if the key does not exist."""
        found: int | None = self.get_client(key, write=True).eval(_INCREMENT_IF_EXISTS, 1, key, delta)
        if found is None:
            raise ValueError(f"Key “{key}” not found.")
        return found


class PersistentRedisCache(RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = PersistentCacheClient
