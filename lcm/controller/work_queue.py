"""Work queue of keys: deduplicated, and never processed twice at the same time."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count

from lcm.controller.backoff import Backoff


class WorkQueue:
    """`add` a key, now or later; `run` processes due keys concurrently.

    The work returns the seconds until the key is due again, or None to wait for `add`. If it raises, the key
    is retried with backoff.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._order = count()
        self._busy: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._changed = asyncio.Event()
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, key: str, delay: float = 0.0) -> None:
        """Schedule a key. An earlier due time stays in effect."""
        due = self._clock() + delay
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._changed.set()

    def close(self) -> None:
        """Start no more work. Work in progress finishes."""
        self._closed = True

    async def idle(self) -> None:
        """Wait until no work is in progress."""
        await self._idle.wait()

    async def run(self, work: Callable[[str], Awaitable[float | None]], workers: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(work))

    async def _work(self, work: Callable[[str], Awaitable[float | None]]) -> None:
        while True:
            key = await self._next()
            self._busy.add(key)
            self._idle.clear()
            try:
                delay = await work(key)
                self._backoffs.pop(key, None)
            except Exception:
                delay = self._backoffs.setdefault(key, Backoff(first=0.5)).next()
            finally:
                self._busy.discard(key)
                if not self._busy:
                    self._idle.set()
            if delay is not None:
                self.add(key, delay)
            self._changed.set()

    async def _next(self) -> str:
        while True:
            now = self._clock()
            key = self._pop_due(now)
            if key is not None:
                return key
            self._changed.clear()
            pause = self._heap[0][0] - now if self._heap else None
            try:
                # A due key may be in progress; the end of that work wakes this loop.
                await asyncio.wait_for(self._changed.wait(), None if pause is None else max(pause, 0.05))
            except TimeoutError:
                continue

    def _pop_due(self, now: float) -> str | None:
        if self._closed:
            return None
        busy_entries = []
        due_key = None
        while self._heap and self._heap[0][0] <= now:
            due, order, key = heapq.heappop(self._heap)
            if self._due.get(key) != due:
                continue
            if key in self._busy:
                busy_entries.append((due, order, key))
                continue
            del self._due[key]
            due_key = key
            break
        for entry in busy_entries:
            heapq.heappush(self._heap, entry)
        return due_key
