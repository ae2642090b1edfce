"""Leases of the pools that this controller serves, renewed with LCM."""

from __future__ import annotations

import asyncio
import logging
import time

from lcm.controller.lcm_client import LcmCallError, LcmClient

logger = logging.getLogger(__name__)

RENEW_SECONDS = 8.0
# LCM grants 30 s. The controller counts from before the request and leaves a margin.
TRUSTED_SECONDS = 22.0


class PoolLeases:
    """`is_ours`: no other controller holds the pool. `may_change`: LCM also confirmed it recently."""

    def __init__(self, client: LcmClient, holder: str) -> None:
        self._client = client
        self._holder = holder
        self._confirmed: dict[str, float] = {}
        self._lost: set[str] = set()

    def is_ours(self, pool: str) -> bool:
        return pool in self._confirmed and pool not in self._lost

    def may_change(self, pool: str) -> bool:
        return self.is_ours(pool) and time.monotonic() - self._confirmed[pool] < TRUSTED_SECONDS

    @property
    def pools(self) -> set[str]:
        return {pool for pool in self._confirmed if self.is_ours(pool)}

    async def renew(self) -> set[str]:
        """Take or renew the leases. Return the pools gained by this call."""
        requested_at = time.monotonic()
        gained = set()
        for lease in await self._client.renew_leases(self._holder):
            if lease.held:
                if not self.is_ours(lease.pool):
                    gained.add(lease.pool)
                self._lost.discard(lease.pool)
                self._confirmed[lease.pool] = requested_at
            elif self.is_ours(lease.pool) or lease.pool not in self._lost:
                logger.warning("pool %s is served by %s", lease.pool, lease.holder)
                self._lost.add(lease.pool)
        return gained

    async def release(self) -> None:
        """Release the leases at shutdown, so that another controller need not wait for them to expire."""
        try:
            await asyncio.wait_for(self._client.release_leases(self._holder), 3)
        except (LcmCallError, TimeoutError) as error:
            logger.warning("leases could not be released and will expire: %s", error)
