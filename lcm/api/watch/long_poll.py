"""Responses to watchers: changes, no changes yet, or an error if the revision is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from django.utils.translation import gettext as _

from lcm.api.watch.hub import FeedHub
from lcm.api.watch.window import FeedWindow
from lcm.domain.access import ControllerScope
from lcm.domain.errors import Gone
from lcm.events import change_feed_reader
from lcm.events.change_feed_reader import FeedChange
from lcm.selectors.controller_sessions import changes_in_scope
from lcm.web.server.database_health import in_database_thread

MAX_CHANGES = 1_000


@dataclass(frozen=True)
class WatchResponse:
    """The changes since the watcher's revision, and the revision it has now."""

    revision: int
    changes: list[FeedChange]


async def watch(hub: FeedHub, scope: ControllerScope, since: int | None, seconds: float) -> WatchResponse:
    """Wait for changes after `since` in this scope; without `since`, return the current revision."""
    if since is None:
        return WatchResponse((await hub.poll()).bounds.revision, [])
    deadline = asyncio.get_running_loop().time() + seconds
    with hub.waiter(scope.pools) as changed:
        window = await hub.window()
        if since > window.bounds.revision:
            # Another process may have read further. If not, the feed was restored from a backup.
            window = await hub.poll()
        while True:
            changed.clear()
            response = await _respond(window, scope, since)
            seconds_left = deadline - asyncio.get_running_loop().time()
            if response.changes or seconds_left <= 0:
                return response
            since = response.revision
            if since >= window.bounds.revision:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), seconds_left)
            window = await hub.window()


async def _respond(window: FeedWindow, scope: ControllerScope, since: int) -> WatchResponse:
    bounds = window.bounds
    if since < bounds.pruned_revision or since > bounds.revision:
        raise Gone(
            _("Revision %(since)s is not in the feed (%(pruned_revision)s to %(revision)s). List again.")
            % {"since": since, "pruned_revision": bounds.pruned_revision, "revision": bounds.revision},
            details={"revision": bounds.revision},
        )
    if window.holds(since):
        changes = window.after(since, scope.pools, MAX_CHANGES)
    else:
        changes = await in_database_thread(lambda: _from_database(since, scope.pools, bounds.revision))
    complete = len(changes) < MAX_CHANGES
    revision = bounds.revision if complete else changes[-1].revision
    if changes and scope.slot_id is not None:
        found = changes
        changes = await in_database_thread(lambda: changes_in_scope(found, scope))
    return WatchResponse(revision, changes)


def _from_database(since: int, pools: Collection[str], until: int) -> list[FeedChange]:
    found = change_feed_reader.changes_after(since, pools=list(pools), limit=MAX_CHANGES)
    return [change for change in found if change.revision <= until]
