"""List-and-watch of LCM's change feed."""

from __future__ import annotations

import asyncio
import logging
import time

from lcm.controller.backoff import Backoff
from lcm.controller.config import Config
from lcm.controller.inventory import Inventory
from lcm.controller.lcm_client import LcmCallError, LcmClient, RevisionExpired, WatchedChange
from lcm.controller.model import Session

logger = logging.getLogger(__name__)

# A burst of changes costs one list request instead of many small ones.
MAX_SINGLE_RELOADS = 400
# Prevents a hot loop when LCM responds at once.
MIN_PAUSE = 0.02


class Watcher:
    def __init__(self, config: Config, client: LcmClient, inventory: Inventory) -> None:
        self._config = config
        self._client = client
        self._inventory = inventory
        self._backoff = Backoff()
        self._may_list_at_once = True

    async def run(self) -> None:
        """Watch until cancelled. After a failure, pause 1 to 30 s and list again.

        An expired revision causes a pause only if no watch has succeeded since the previous one.
        """
        while True:
            try:
                await self._list_and_watch()
            except LcmCallError as error:
                await self._pause(error)

    async def _pause(self, error: LcmCallError) -> None:
        if isinstance(error, RevisionExpired) and self._may_list_at_once:
            self._may_list_at_once = False
            logger.info("the watch revision expired, listing again")
            await asyncio.sleep(MIN_PAUSE)
            return
        pause = self._backoff.next()
        logger.warning("the watch failed, next attempt in %.1f s: %s", pause, error)
        await asyncio.sleep(pause)

    async def refresh(self, session_id: str) -> Session | None:
        """Reload one session. Return None if it is no longer on this controller's slots."""
        sessions = await self._client.sessions([session_id])
        if not sessions:
            self._inventory.forget(session_id)
            return None
        self._inventory.put(sessions[0])
        return sessions[0]

    async def _list_and_watch(self) -> None:
        # Read the revision first: the watch then repeats any change made while the list is read.
        revision = await self._client.revision()
        self._inventory.replace_all(await self._client.sessions(), await self._client.slots())
        until = time.monotonic() + self._config.resync_seconds
        while (left := until - time.monotonic()) > 0:
            wait = min(self._config.watch_seconds, left)
            revision, changes = await self._client.watch(revision, round(wait, 3))
            self._backoff.reset()
            self._may_list_at_once = True
            if len(changes) > MAX_SINGLE_RELOADS:
                return
            await self._apply(changes)
            await asyncio.sleep(MIN_PAUSE)

    async def _apply(self, changes: list[WatchedChange]) -> None:
        if any(change.kind == "slot" for change in changes):
            self._inventory.replace_slots(await self._client.slots())
        ids = {change.id for change in changes if change.kind == "session"}
        if not ids:
            return
        fresh = await self._client.sessions(ids)
        for session in fresh:
            self._inventory.put(session)
        for session_id in ids - {session.id for session in fresh}:
            self._inventory.forget(session_id)
