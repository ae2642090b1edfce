"""The newest part of the feed in memory, so that a thousand watchers cost one look at the database."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

from lcm.events.change_feed_reader import FeedBounds, FeedChange

WINDOW_SIZE = 20_000


class FeedWindow:
    """Everything after `start`, up to `reach.revision`."""

    def __init__(self, reach: FeedBounds) -> None:
        self.bounds = reach
        self.start = reach.revision
        self._changes: list[FeedChange] = []

    def add(self, changes: Sequence[FeedChange], reach: FeedBounds) -> None:
        """The next changes in their order; `reach` is what has been read up to."""
        self._changes.extend(changes)
        self.bounds = reach
        surplus = len(self._changes) - WINDOW_SIZE
        if surplus > 0:
            self.start = self._changes[surplus - 1].revision
            del self._changes[:surplus]

    def holds(self, since: int) -> bool:
        return self.start <= since <= self.bounds.revision

    def after(self, since: int, pools: Collection[str], limit: int) -> list[FeedChange]:
        """What a watcher who is at `since` has not seen."""
        first = bisect_right(self._changes, since, key=lambda change: change.revision)
        found = []
        for change in self._changes[first:]:
            if change.pool in pools:
                found.append(change)
                if len(found) == limit:
                    break
        return found
