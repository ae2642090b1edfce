"""Early ticks: an event triggers a tick before the next beat."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar

from django.core.cache import cache
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from lcm.services.task_queue import bounded_connection
from scheduling.models import Pool

logger = logging.getLogger(__name__)

# A tick changes many rows and must not trigger itself.
inside_tick: ContextVar[bool] = ContextVar("inside_tick", default=False)
TRIGGER_DELAY_SECONDS = 1
# After a failure the broker is not called for this long.
PAUSE_SECONDS = 10.0


class BrokerCircuitBreaker:
    """Whether this process should call the broker now."""

    open_until = 0.0

    def is_open(self) -> bool:
        return time.monotonic() < self.open_until

    def record_failure(self, error: Exception) -> None:
        """Record a failure; logged once until the next try."""
        self.open_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("tick_trigger_failed", extra={"error": str(error), "pause_seconds": PAUSE_SECONDS})


broker = BrokerCircuitBreaker()


def trigger_tick(pool: Pool) -> None:
    """Enqueue the pool's tick after this transaction; calls within one second share a tick."""
    if not inside_tick.get():
        transaction.on_commit(lambda: _send(str(pool.pk)))


def _send(pool_id: str) -> None:
    if broker.is_open():
        return
    try:
        if cache.add(f"wake:{pool_id}", 1, timeout=TRIGGER_DELAY_SECONDS):
            _enqueue_tick(pool_id)
    except (OperationalError, RedisError, OSError) as error:
        broker.record_failure(error)


def _enqueue_tick(pool_id: str) -> None:
    from scheduling.tasks import tick_pool

    with bounded_connection() as connection:
        tick_pool.apply_async(
            (pool_id,), countdown=TRIGGER_DELAY_SECONDS, expires=30, retry=False, connection=connection
        )
