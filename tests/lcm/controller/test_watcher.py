"""List and watch: no change is missed, and there is no hot loop."""

import asyncio

import httpx
import pytest

from lcm.controller.config import Config
from lcm.controller.inventory import Inventory
from lcm.controller.lcm_client import LcmClient, LcmRejected, LcmUnavailable, RevisionExpired
from lcm.controller.model import Session
from lcm.controller.pool_leases import TRUSTED_SECONDS, PoolLeases
from lcm.controller.watcher import Watcher
from tests.lcm.controller.fake_lcm import FakeLcm, session, until


@pytest.fixture
def lcm(monkeypatch):
    monkeypatch.setattr("lcm.controller.backoff.random.random", lambda: 0.0)
    return FakeLcm()


def follow(lcm, scenario, **settings):
    async def wrapped():
        config = Config(token="lcm_x", watch_seconds=0.2, **settings)
        client = LcmClient(config, transport=httpx.MockTransport(lcm))
        inventory = Inventory(config, print)
        watcher = Watcher(config, client, inventory)
        running = asyncio.create_task(watcher.run())
        try:
            await asyncio.wait_for(scenario(inventory, watcher), 10)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.aclose()
            await inventory.aclose()

    asyncio.run(wrapped())


def test_existing_sessions_are_listed_and_new_ones_watched(lcm):
    lcm.put(session())

    async def scenario(inventory, watcher):
        await until(lambda: len(inventory.sessions) == 1)
        assert set(inventory.slots) == {"slot-1"}
        lcm.put(session())
        await until(lambda: len(inventory.sessions) == 2)
        removed = next(iter(lcm.sessions))
        lcm.publish(removed)
        del lcm.sessions[removed]
        await until(lambda: len(inventory.sessions) == 1)

    follow(lcm, scenario)
    assert lcm.calls["slots"] == 1


def test_all_pages_of_a_list_are_read(lcm):
    lcm.page = 7
    for _ in range(30):
        lcm.put(session())

    async def scenario(inventory, watcher):
        await until(lambda: len(inventory.sessions) == 30)

    follow(lcm, scenario)


def test_an_expired_revision_lists_again(lcm):
    lcm.put(session())
    failures = iter([410])
    lcm.failures["watch"] = lambda: next(failures, None) if lcm.calls["watch"] > 1 else None

    async def scenario(inventory, watcher):
        await until(lambda: lcm.calls["lablet-sessions"] >= 2 and lcm.calls["watch"] >= 4)

    follow(lcm, scenario)


def test_a_burst_of_changes_is_one_list(lcm):
    async def scenario(inventory, watcher):
        await until(lambda: lcm.calls["watch"] >= 2)
        lcm.calls.clear()
        for _ in range(450):
            lcm.put(session())
        await until(lambda: len(inventory.sessions) == 450)
        assert lcm.calls["lablet-sessions"] <= 4

    follow(lcm, scenario)


@pytest.mark.parametrize("failure", ["down", 500, 401, 410])
def test_a_failing_lcm_is_not_polled_in_a_hot_loop(lcm, failure):
    lcm.failures["watch"] = failure

    async def scenario(inventory, watcher):
        await asyncio.sleep(1)
        assert lcm.calls["watch"] <= 3

    follow(lcm, scenario)


def test_a_revision_that_always_expires_does_not_list_in_a_hot_loop(lcm):
    # The feed returns its revision, but rejects watching from there.
    lcm.failures["watch"] = lambda: 410 if lcm.calls["watch"] % 2 == 0 else None

    async def scenario(inventory, watcher):
        await asyncio.sleep(1)
        assert 2 <= lcm.calls["lablet-sessions"] <= 3

    follow(lcm, scenario)


def test_a_session_that_left_its_slot_is_dropped(lcm):
    row = session()
    lcm.put(row)

    async def scenario(inventory, watcher):
        await until(lambda: inventory.sessions)
        inventory.put(Session.read({**row, "status": "PENDING", "slot": None}))
        assert inventory.sessions == {}

    follow(lcm, scenario)


def test_one_session_can_be_reloaded(lcm):
    row = session()
    lcm.put(row)

    async def scenario(inventory, watcher):
        await until(lambda: inventory.sessions)
        lcm.sessions[row["id"]] = {**row, "status": "STOPPING"}
        assert (await watcher.refresh(row["id"])).status == "STOPPING"
        del lcm.sessions[row["id"]]
        assert await watcher.refresh(row["id"]) is None
        assert inventory.sessions == {}

    follow(lcm, scenario)


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, LcmRejected), (401, LcmRejected), (404, LcmRejected), (409, LcmRejected), (410, RevisionExpired)]
    + [(status, LcmUnavailable) for status in (408, 429, 500, 502, 503, "down")],
)
def test_retryable_and_final_errors_are_distinguished(lcm, status, error):
    lcm.failures["slots"] = status

    async def scenario():
        client = LcmClient(Config(token="lcm_x"), transport=httpx.MockTransport(lcm))
        with pytest.raises(error):
            await client.slots()
        await client.aclose()

    asyncio.run(scenario())


# --- leases ----------------------------------------------------------------------------------------------


def test_a_pool_is_held_while_lcm_confirms_it(lcm, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("lcm.controller.pool_leases.time.monotonic", lambda: clock[0])

    async def scenario():
        client = LcmClient(Config(token="lcm_x"), transport=httpx.MockTransport(lcm))
        leases = PoolLeases(client, "me")
        assert not leases.is_ours("cml-eu")
        assert await leases.renew() == {"cml-eu"}
        assert await leases.renew() == set()
        assert leases.may_change("cml-eu")
        clock[0] += TRUSTED_SECONDS + 1
        # LCM does not respond: observations may still be posted, but nothing may be changed.
        assert (leases.is_ours("cml-eu"), leases.may_change("cml-eu")) == (True, False)
        lcm.leases = [{"pool": "cml-eu", "held": False, "holder": "other"}]
        assert await leases.renew() == set()
        assert not leases.is_ours("cml-eu")
        lcm.leases = [{"pool": "cml-eu", "held": True, "holder": "me"}]
        assert await leases.renew() == {"cml-eu"}
        assert leases.may_change("cml-eu")
        await client.aclose()

    asyncio.run(scenario())


class Redirected:
    """LCM without a proxy: its web process redirects the watch to the watch process."""

    def __init__(self, location):
        self.location = location
        self.calls = []
        self.is_watch_down = False

    async def __call__(self, request):
        self.calls.append((request.url.port, str(request.url.query, "ascii")))
        assert request.headers["Authorization"] == "Bearer lcm_x"
        if request.url.port == 8000:
            query = request.url.query.decode()
            where = f"{self.location}/api/internal/watch{'?' if query else ''}{query}"
            return httpx.Response(307, headers={"Location": where})
        if self.is_watch_down:
            raise httpx.ConnectError("connection refused")
        return httpx.Response(200, json={"revision": 7, "changes": []})


def call_redirected(server, scenario, lcm_url="http://lcm:8000"):
    async def wrapped():
        config = Config(token="lcm_x", lcm_url=lcm_url)
        client = LcmClient(config, transport=httpx.MockTransport(server))
        try:
            await scenario(client)
        finally:
            await client.aclose()

    asyncio.run(wrapped())


def test_a_redirect_to_the_watch_process_is_followed_once_with_the_token():
    server = Redirected("http://lcm:8001")

    async def scenario(client):
        assert await client.revision() == 7
        assert await client.watch(7, 5) == (7, [])

    call_redirected(server, scenario)
    assert server.calls == [(8000, ""), (8001, ""), (8001, "since=7&wait=5")]


def test_after_a_failure_the_watch_process_is_found_again():
    server = Redirected("http://lcm:8001")

    async def scenario(client):
        await client.revision()
        server.is_watch_down = True
        with pytest.raises(LcmUnavailable):
            await client.revision()
        server.is_watch_down, server.location = False, "http://lcm:8002"
        assert await client.revision() == 7

    call_redirected(server, scenario)
    assert [port for port, _ in server.calls] == [8000, 8001, 8001, 8000, 8002]


def test_the_token_is_not_sent_over_http_if_lcm_has_https():
    server = Redirected("http://lcm:8001")

    async def scenario(client):
        with pytest.raises(LcmUnavailable, match="redirects from HTTPS to http://lcm:8001/"):
            await client.revision()

    call_redirected(server, scenario, lcm_url="https://lcm:8000")
    assert [port for port, _ in server.calls] == [8000]
