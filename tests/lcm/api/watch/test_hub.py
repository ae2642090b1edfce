"""The hub and its window: one query for all watchers, no missed changes, no needless wake-ups."""

import asyncio
from itertools import pairwise
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.api.watch import hub as hub_module
from lcm.api.watch import long_poll, window
from lcm.api.watch.hub import FeedHub
from lcm.api.watch.long_poll import watch
from lcm.api.watch.window import FeedWindow
from lcm.domain.access import ControllerScope
from lcm.domain.errors import Gone
from lcm.events.change_feed_reader import FeedBounds, FeedChange
from lcm.events.feed_notification import FeedSubscription

EU, US = ControllerScope(("eu",)), ControllerScope(("us",))


def change(revision, pool="eu"):
    return FeedChange(revision, "session", uuid4(), pool)


class Feed:
    """An in-memory feed that replaces the database."""

    def __init__(self):
        self.changes, self.pruned_revision, self.reads = [], 0, 0

    def add(self, pool="eu"):
        self.changes.append(change(len(self.changes) + 1, pool))

    def read_after(self, revision):
        self.reads += 1
        bounds = FeedBounds(len(self.changes), self.pruned_revision)
        if revision is None or not bounds.pruned_revision <= revision <= bounds.revision:
            return None, bounds
        return self.changes[revision:], bounds

    def from_database(self, since, pools, until):
        return [each for each in self.changes[since:until] if each.pool in pools][: long_poll.MAX_CHANGES]


@pytest.fixture
def feed(monkeypatch, settings):
    feed = Feed()
    settings.CONFIG["WATCH_POLL_INTERVAL"] = 0.05
    monkeypatch.setattr(hub_module, "QUIET_POLL", 0.05)
    monkeypatch.setattr(hub_module, "_read_after", feed.read_after)
    monkeypatch.setattr(long_poll, "_from_database", feed.from_database)
    return feed


def run(work):
    """Run in a new event loop and check that no task is left."""

    async def wrapped():
        try:
            return await asyncio.wait_for(work(), 10)
        finally:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    return asyncio.run(wrapped())


def test_without_since_the_response_is_the_current_revision(feed):
    feed.add()
    response = run(lambda: watch(FeedHub(), EU, None, 5))
    assert (response.revision, response.changes) == (1, [])


def test_existing_changes_are_returned_immediately(feed):
    for pool in ("eu", "us", "eu"):
        feed.add(pool)
    response = run(lambda: watch(FeedHub(), EU, 1, 5))
    assert (response.revision, [each.revision for each in response.changes]) == (3, [3])


def test_a_change_wakes_the_watchers_of_its_pool(feed):
    async def scenario():
        hub = FeedHub()
        feed.add()
        watcher = asyncio.create_task(watch(hub, EU, 1, 5))
        other = asyncio.create_task(watch(hub, US, 1, 1.5))
        await asyncio.sleep(0.1)
        feed.add("eu")
        first, second = await watcher, await other
        assert [each.revision for each in first.changes] == [2]
        # The watcher was not woken and does not need to see the change again.
        assert (second.revision, second.changes) == (2, [])

    run(scenario)


def test_an_empty_response_is_returned_after_the_wait(feed):
    feed.add()
    response = run(lambda: watch(FeedHub(), EU, 1, 0.2))
    assert (response.revision, response.changes) == (1, [])


def test_many_watchers_cost_one_query(feed):
    async def scenario():
        hub = FeedHub()
        feed.add()
        await hub.poll()
        watchers = [asyncio.create_task(watch(hub, EU, 1, 5)) for _ in range(300)]
        await asyncio.sleep(0.2)
        feed.reads = 0
        feed.add()
        responses = await asyncio.gather(*watchers)
        assert all(response.revision == 2 for response in responses)
        assert feed.reads <= 5
        assert hub.waiting == {}

    run(scenario)


def test_the_first_change_wakes_watchers(feed):
    async def scenario():
        hub = FeedHub()
        watcher = asyncio.create_task(watch(hub, EU, 0, 5))
        await asyncio.sleep(0.1)
        feed.add()
        return await watcher

    assert [each.revision for each in run(scenario).changes] == [1]


@pytest.mark.parametrize(("since", "pruned_revision"), [(2, 3), (9, 0), (0, 1)])
def test_a_revision_outside_the_feed_is_gone(feed, since, pruned_revision):
    for _ in range(5):
        feed.add()
    feed.pruned_revision = pruned_revision
    with pytest.raises(Gone):
        run(lambda: watch(FeedHub(), EU, since, 1))


def test_a_lagging_process_reads_the_feed_before_it_returns_gone(feed):
    async def scenario():
        hub = FeedHub()
        feed.add()
        await hub.window()
        feed.add()
        feed.add()
        return await watch(hub, EU, 3, 0.1)

    assert run(scenario).revision == 3


def test_changes_before_the_window_are_read_from_the_database(feed, monkeypatch):
    monkeypatch.setattr(window, "WINDOW_SIZE", 3)

    async def scenario():
        hub = FeedHub()
        feed.add()
        await hub.poll()
        for _ in range(8):
            feed.add()
        await hub.poll()
        return await watch(hub, EU, 2, 1)

    assert [each.revision for each in run(scenario).changes] == [3, 4, 5, 6, 7, 8, 9]


def test_a_response_is_bounded_and_the_next_one_continues(feed, monkeypatch):
    monkeypatch.setattr(long_poll, "MAX_CHANGES", 3)

    async def scenario():
        hub, since, seen = FeedHub(), 1, []
        for _ in range(9):
            feed.add()
        while True:
            response = await watch(hub, EU, since, 0.1)
            if not response.changes:
                return seen
            assert len(response.changes) <= 3
            seen += [each.revision for each in response.changes]
            since = response.revision

    assert run(scenario) == list(range(2, 10))


def test_an_idle_hub_reads_the_feed_again(feed, monkeypatch):
    monkeypatch.setattr(hub_module, "LINGER", 0.1)

    async def scenario():
        hub = FeedHub()
        feed.add()
        await watch(hub, EU, 1, 0.05)
        await asyncio.sleep(0.4)
        feed.add()
        return await watch(hub, EU, 1, 0.05)

    assert [each.revision for each in run(scenario).changes] == [2]


def test_a_subscription_cancelled_while_connecting_ends():
    async def scenario():
        for moment in range(30):
            async with FeedSubscription(lambda: None):
                await asyncio.sleep(moment / 2000)

    run(scenario)


@given(
    pools=st.lists(st.sampled_from(["eu", "us", "jp"]), max_size=40),
    kept=st.integers(1, 50),
    cuts=st.lists(st.integers(0, 40), max_size=5),
    watched=st.sets(st.sampled_from(["eu", "us"]), min_size=1),
)
def test_a_window_returns_the_feed_or_reports_that_it_does_not_hold_the_revision(pools, kept, cuts, watched):
    whole = [change(number + 1, pool) for number, pool in enumerate(pools)]
    found = FeedWindow(FeedBounds())
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut <= len(whole))})
    original = window.WINDOW_SIZE
    window.WINDOW_SIZE = kept
    try:
        for start, end in pairwise(edges):
            found.add(whole[start:end], FeedBounds(end))
    finally:
        window.WINDOW_SIZE = original
    for since in range(len(whole) + 1):
        if found.holds(since):
            expected = [each for each in whole[since:] if each.pool in watched]
            assert found.after(since, watched, 1000) == expected
        else:
            assert since < found.start
