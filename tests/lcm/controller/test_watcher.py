"""List and watch: no change is missed, and there is no hot loop."""

import asyncio

import httpx
import pytest

from lcm.controller.config import Config
from lcm.controller.inventory import Inventory
from lcm.controller.lcm_client import LcmClient, LcmRefused, LcmUnavailable, RevisionExpired
from lcm.controller.model import Session
from lcm.controller.pool_leases import TRUSTED_SECONDS, PoolLeases
from lcm.controller.watcher import Watcher
from tests.lcm.controller.fake_lcm import Lcm, session, until


@pytest.fixture
def lcm(monkeypatch):
    monkeypatch.setattr("lcm.controller.backoff.random.random", lambda: 0.0)
    return Lcm()


def follow(lcm, scene, **settings):
    async def wrapped():
        config = Config(token="lcm_x", watch_seconds=0.2, **settings)
        client = LcmClient(config, transport=httpx.MockTransport(lcm))
        world = Inventory(config, print)
        follower = Watcher(config, client, world)
        running = asyncio.create_task(follower.run())
        try:
            await asyncio.wait_for(scene(world, follower), 10)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.aclose()
            await world.aclose()

    asyncio.run(wrapped())


def test_existing_sessions_are_listed_and_new_ones_watched(lcm):
    lcm.put(session())

    async def scene(world, follower):
        await until(lambda: len(world.sessions) == 1)
        assert set(world.slots) == {"slot-1"}
        lcm.put(session())
        await until(lambda: len(world.sessions) == 2)
        gone = next(iter(lcm.sessions))
        lcm.publish(gone)
        del lcm.sessions[gone]
        await until(lambda: len(world.sessions) == 1)

    follow(lcm, scene)
    assert lcm.calls["slots"] == 1


def test_all_pages_of_a_list_are_read(lcm):
    lcm.page = 7
    for _ in range(30):
        lcm.put(session())

    async def scene(world, follower):
        await until(lambda: len(world.sessions) == 30)

    follow(lcm, scene)


def test_an_expired_revision_lists_again(lcm):
    lcm.put(session())
    answers = iter([410])
    lcm.trouble["watch"] = lambda: next(answers, None) if lcm.calls["watch"] > 1 else None

    async def scene(world, follower):
        await until(lambda: lcm.calls["lablet-sessions"] >= 2 and lcm.calls["watch"] >= 4)

    follow(lcm, scene)


def test_a_burst_of_changes_is_one_list(lcm):
    async def scene(world, follower):
        await until(lambda: lcm.calls["watch"] >= 2)
        lcm.calls.clear()
        for _ in range(450):
            lcm.put(session())
        await until(lambda: len(world.sessions) == 450)
        assert lcm.calls["lablet-sessions"] <= 4

    follow(lcm, scene)


@pytest.mark.parametrize("trouble", ["down", 500, 401, 410])
def test_a_failing_lcm_is_not_polled_in_a_hot_loop(lcm, trouble):
    lcm.trouble["watch"] = trouble

    async def scene(world, follower):
        await asyncio.sleep(1)
        assert lcm.calls["watch"] <= 3

    follow(lcm, scene)


def test_a_revision_that_always_expires_does_not_list_in_a_hot_loop(lcm):
    # The feed returns its revision, but rejects watching from there.
    lcm.trouble["watch"] = lambda: 410 if lcm.calls["watch"] % 2 == 0 else None

    async def scene(world, follower):
        await asyncio.sleep(1)
        assert 2 <= lcm.calls["lablet-sessions"] <= 3

    follow(lcm, scene)


def test_a_session_that_left_its_slot_is_dropped(lcm):
    row = session()
    lcm.put(row)

    async def scene(world, follower):
        await until(lambda: world.sessions)
        world.put(Session.read({**row, "status": "PENDING", "slot": None}))
        assert world.sessions == {}

    follow(lcm, scene)


def test_one_session_can_be_reloaded(lcm):
    row = session()
    lcm.put(row)

    async def scene(world, follower):
        await until(lambda: world.sessions)
        lcm.sessions[row["id"]] = {**row, "status": "STOPPING"}
        assert (await follower.refresh(row["id"])).status == "STOPPING"
        del lcm.sessions[row["id"]]
        assert await follower.refresh(row["id"]) is None
        assert world.sessions == {}

    follow(lcm, scene)


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, LcmRefused), (401, LcmRefused), (404, LcmRefused), (409, LcmRefused), (410, RevisionExpired)]
    + [(status, LcmUnavailable) for status in (408, 429, 500, 502, 503, "down")],
)
def test_retryable_and_final_errors_are_distinguished(lcm, status, error):
    lcm.trouble["slots"] = status

    async def scene():
        client = LcmClient(Config(token="lcm_x"), transport=httpx.MockTransport(lcm))
        with pytest.raises(error):
            await client.slots()
        await client.aclose()

    asyncio.run(scene())


# --- leases ----------------------------------------------------------------------------------------------


def test_a_pool_is_held_while_lcm_confirms_it(lcm, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("lcm.controller.pool_leases.time.monotonic", lambda: clock[0])

    async def scene():
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

    asyncio.run(scene())


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


def call_redirected(server, scene, lcm_url="http://lcm:8000"):
    async def wrapped():
        config = Config(token="lcm_x", lcm_url=lcm_url)
        client = LcmClient(config, transport=httpx.MockTransport(server))
        try:
            await scene(client)
        finally:
            await client.aclose()

    asyncio.run(wrapped())


def test_a_redirect_to_the_watch_process_is_followed_once_with_the_token():
    server = Redirected("http://lcm:8001")

    async def scene(client):
        assert await client.revision() == 7
        assert await client.watch(7, 5) == (7, [])

    call_redirected(server, scene)
    assert server.calls == [(8000, ""), (8001, ""), (8001, "since=7&wait=5")]


def test_after_a_failure_the_watch_process_is_found_again():
    server = Redirected("http://lcm:8001")

    async def scene(client):
        await client.revision()
        server.is_watch_down = True
        with pytest.raises(LcmUnavailable):
            await client.revision()
        server.is_watch_down, server.location = False, "http://lcm:8002"
        assert await client.revision() == 7

    call_redirected(server, scene)
    assert [port for port, _ in server.calls] == [8000, 8001, 8001, 8000, 8002]


def test_the_token_is_not_sent_over_http_if_lcm_has_https():
    server = Redirected("http://lcm:8001")

    async def scene(client):
        with pytest.raises(LcmUnavailable, match="redirects from HTTPS to http://lcm:8001/"):
            await client.revision()

    call_redirected(server, scene, lcm_url="https://lcm:8000")
    assert [port for port, _ in server.calls] == [8000]
