"""Redis cache with a persistent client and an increment in one round trip."""

from uuid import uuid4

import pytest
from django.conf import settings

from lcm.config.redis_cache import PersistentRedisCache

pytestmark = pytest.mark.integration


@pytest.fixture
def cache():
    return PersistentRedisCache(settings.REDIS_URL, {"KEY_PREFIX": f"test-{uuid4().hex}", "TIMEOUT": 30})


def test_an_existing_key_is_incremented(cache):
    assert cache.add("calls", 1)
    assert [cache.incr("calls"), cache.incr("calls", 5)] == [2, 7]
    assert cache.get("calls") == 7


def test_incrementing_does_not_create_a_key(cache):
    with pytest.raises(ValueError, match="not found"):
        cache.incr("calls")
    assert cache.get("calls") is None


def test_incrementing_keeps_the_expiry(cache):
    cache.add("calls", 1, timeout=20)
    cache.incr("calls")
    client = cache._cache.get_client()
    assert 0 < client.ttl(cache.make_key("calls")) <= 20


def test_the_client_is_reused(cache):
    assert cache._cache.get_client(write=True) is cache._cache.get_client("calls")
