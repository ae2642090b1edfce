"""What a watcher is answered: changes, nothing yet, or that it has to list again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from django.db import close_old_connections

from lcm.api.watch.hub import Hub
from lcm.api.watch.window import Window
from lcm.errors import Gone
from lcm.selectors import feed
from lcm.selectors.feed import Change
from lcm.web.database_health import while_database_answers

MOST_CHANGES = 1_000


@dataclass(frozen=True)
class Answer:
    """Where the watcher is now, and what led there."""

    revision: int
    changes: list[Change]


async def watch(hub: Hub, pools: Collection[str], since: int | None, seconds: float) -> Answer:
    """Changes after `since` in these pools, waiting for one. Without `since`: where the feed is."""
    if since is None:
        return Answer((await hub.look()).reach.revision, [])
    deadline = asyncio.get_running_loop().time() + seconds
    with hub.waiter(pools) as changed:
        window = await hub.window()
        if since > window.reach.revision:
            # Another process may be ahead of this one; a feed that was restored from a backup is not.
            window = await hub.look()
        while True:
            changed.clear()
            answer = await _answer(window, pools, since)
            left = deadline - asyncio.get_running_loop().time()
            if answer.changes or left <= 0:
                return answer
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), left)
            window = await hub.window()


async def _answer(window: Window, pools: Collection[str], since: int) -> Answer:
    reach = window.reach
    if since < reach.forgotten or since > reach.revision:
        raise Gone(
            f"The feed goes from {reach.forgotten} to {reach.revision}, not from {since}: list again.",
            details={"revision": reach.revision},
        )
    if window.holds(since):
        changes = window.after(since, pools, MOST_CHANGES)
    else:
        changes = await while_database_answers(
            lambda: asyncio.to_thread(_from_database, since, pools, reach.revision)
        )
    complete = len(changes) < MOST_CHANGES
    return Answer(reach.revision if complete else changes[-1].revision, changes)


def _from_database(since: int, pools: Collection[str], until: int) -> list[Change]:
    try:
        found = feed.changes_after(since, pools=list(pools), limit=MOST_CHANGES)
        return [change for change in found if change.revision <= until]
    finally:
        close_old_connections()
