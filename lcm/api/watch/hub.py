"""The hub of the watch process, which reads the change feed for all of its watchers.

A waiting watcher uses no thread and no database connection. Only the hub reads, in a thread that it releases.
Redis wakes the hub; without Redis it polls every `WATCH_POLL_INTERVAL` seconds.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import DatabaseError

from lcm.api.watch.window import FeedWindow
from lcm.domain.errors import DatabaseUnavailable
from lcm.events import change_feed_reader
from lcm.events.change_feed import assign_revisions
from lcm.events.change_feed_reader import FeedBounds, FeedChange
from lcm.events.feed_notification import FeedSubscription
from lcm.web.server.database_health import in_database_thread

logger = logging.getLogger(__name__)

READ_AT_ONCE = 5_000
# Polling interval while Redis works; without watchers the hub stops after LINGER seconds.
QUIET_POLL = 5.0
LINGER = 60.0
# Delay that batches changes which arrive together.
GATHER = 0.01


class FeedHub:
    """Reads the feed and wakes watchers; `waiting` holds an event for each watcher, by pool."""

    def __init__(self) -> None:
        self.waiting: dict[str, set[asyncio.Event]] = {}
        self._window: FeedWindow | None = None
        self._is_current = False
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def waiter(self, pools: Collection[str]) -> Iterator[asyncio.Event]:
        """Yield an event that is set when something changes in one of the pools."""
        event = asyncio.Event()
        for pool in pools:
            self.waiting.setdefault(pool, set()).add(event)
        try:
            yield event
        finally:
            for pool in pools:
                self.waiting[pool].discard(event)
                if not self.waiting[pool]:
                    del self.waiting[pool]

    async def window(self) -> FeedWindow:
        """Return the newest part of the feed; read it first if it is out of date."""
        if self._task is None or self._task.done():
            self._is_current = False
            # In its own context, because the task outlives the request that started it.
            self._task = asyncio.create_task(self._poll_feed(), context=contextvars.Context())
        if self._window is None or not self._is_current:
            async with self._lock:
                # Another watcher may have read the feed while this one waited for the lock.
                if self._window is None or not self._is_current:
                    return await self._read()
        return self._window

    async def poll(self) -> FeedWindow:
        """Read new changes and wake the watchers of their pools."""
        async with self._lock:
            return await self._read()

    async def _read(self) -> FeedWindow:
        revision = self._window.bounds.revision if self._window else None
        changes, bounds = await in_database_thread(lambda: _read_after(revision))
        if changes is None or self._window is None:
            self._window = FeedWindow(bounds)
        else:
            self._window.add(changes, bounds)
        for pool in {change.pool for change in changes or ()}:
            for event in self.waiting.get(pool, ()):
                event.set()
        self._is_current = True
        return self._window

    async def _poll_feed(self) -> None:
        async with FeedSubscription(self._wake.set) as subscription:
            idle = 0.0
            while idle < LINGER:
                pause = QUIET_POLL if subscription.is_live else settings.CONFIG["WATCH_POLL_INTERVAL"]
                await _woken(self._wake, pause)
                self._wake.clear()
                if not self.waiting:
                    self._is_current = False
                    idle += pause
                    continue
                idle = 0.0
                try:
                    await self.poll()
                except (DatabaseError, DatabaseUnavailable) as error:
                    logger.warning("watch_poll_failed", extra={"error": str(error)})


async def _woken(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
        await asyncio.sleep(GATHER)


def _read_after(revision: int | None) -> tuple[list[FeedChange] | None, FeedBounds]:
    """Number committed changes and return the ones after the revision, or None if that is out of range."""
    while change_feed_reader.has_unnumbered():
        assign_revisions()
    bounds = change_feed_reader.feed_bounds()
    if revision is None or not bounds.pruned_revision <= revision <= bounds.revision:
        return None, bounds
    return _changes(revision, bounds.revision), bounds


def _changes(after: int, until: int) -> list[FeedChange]:
    found: list[FeedChange] = []
    while after < until:
        page = change_feed_reader.changes_after(after, limit=READ_AT_ONCE)
        found += [change for change in page if change.revision <= until]
        if len(page) < READ_AT_ONCE:
            break
        after = page[-1].revision
    return found


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, FeedHub] = WeakKeyDictionary()


def hub() -> FeedHub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = FeedHub()
    return _hubs[loop]
