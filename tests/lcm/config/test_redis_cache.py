"""The cache in Redis: a client that is kept, and a counter that goes there once."""

from uuid import uuid4

import pytest
from django.conf import settings

from lcm.config.redis_cache import PersistentRedisCache

pytestmark = pytest.mark.integration


@pytest.fixture
def cache():
    return PersistentRedisCache(settings.REDIS_URL, {"KEY_PREFIX": f"test-{uuid4().hex}", "TIMEOUT": 30})


def test_what_is_there_is_counted(cache):
    assert cache.add("calls", 1)
    assert [cache.incr("calls"), cache.incr("calls", 5)] == [2, 7]
    assert cache.get("calls") == 7


def test_what_is_not_there_is_not_made_by_counting(cache):
    with pytest.raises(ValueError, match="not found"):
        cache.incr("calls")
    assert cache.get("calls") is None


def test_counting_leaves_the_time_that_it_is_kept(cache):
    cache.add("calls", 1, timeout=20)
    cache.incr("calls")
    client = cache._cache.get_client()
    assert 0 < client.ttl(cache.make_key("calls")) <= 20


def test_the_client_is_kept(cache):
    assert cache._cache.get_client(write=True) is cache._cache.get_client("calls")
