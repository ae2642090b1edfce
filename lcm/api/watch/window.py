"""The newest part of the feed in memory, so that a thousand watchers cost one query."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

from lcm.events.change_feed_reader import FeedBounds, FeedChange

WINDOW_SIZE = 20_000


class FeedWindow:
    """All changes after `start`, up to `bounds.revision`."""

    def __init__(self, bounds: FeedBounds) -> None:
        self.bounds = bounds
        self.start = bounds.revision
        self._changes: list[FeedChange] = []

    def add(self, changes: Sequence[FeedChange], bounds: FeedBounds) -> None:
        """Append the next changes in order; `bounds` are the new bounds of the feed."""
        self._changes.extend(changes)
        self.bounds = bounds
        surplus = len(self._changes) - WINDOW_SIZE
        if surplus > 0:
            self.start = self._changes[surplus - 1].revision
            del self._changes[:surplus]

    def holds(self, since: int) -> bool:
        return self.start <= since <= self.bounds.revision

    def after(self, since: int, pools: Collection[str], limit: int) -> list[FeedChange]:
        """Return the changes after `since`."""
        first = bisect_right(self._changes, since, key=lambda change: change.revision)
        found = []
        for change in self._changes[first:]:
            if change.pool in pools:
                found.append(change)
                if len(found) == limit:
                    break
        return found
