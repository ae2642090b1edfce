"""The watch over the API: permissions and rejected requests, and a real server with many watchers."""

import asyncio
import os
import time
from pathlib import Path

import httpx
import pytest
from redis import Redis

from lcm.config.data_folder import embedded_valkey_socket
from lcm.models import User
from tests.support.control_plane import wait_until
from tests.support.controller_plane import Plane
from tests.support.factories import make_person_token
from tests.support.watch_server import WATCH, request_watch


@pytest.fixture(params=["web", "watch"])
def call_watch(request, api, transactional_db):
    """Call the watch of a web process, and of the watch process."""

    def call(caller, query="", method="get"):
        path = f"{WATCH}{query}"
        if request.param == "web":
            return getattr(api(caller), method)(path)
        key = make_person_token(caller).key if isinstance(caller, User) else caller.key if caller else ""
        return request_watch(path, key=key, method=method.upper())

    return call


@pytest.mark.parametrize(
    "query", ["since=x", "since=-1", "since=" + "9" * 30, "wait=31", "wait=-1", "wait=nan"]
)
def test_invalid_parameters_are_rejected(call_watch, controller, query):
    response = call_watch(controller, f"?{query}")
    assert (response.status_code, response.json()["code"]) == (400, "invalid")


def test_people_and_anonymous_callers_are_rejected(call_watch, admin):
    assert call_watch(None).status_code == 401
    assert call_watch(admin).status_code == 403


def test_only_get_is_allowed(call_watch, controller):
    response = call_watch(controller, method="post")
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")


def test_a_controller_is_limited_to_its_rate(call_watch, controller, settings, one_window):
    settings.CONFIG["CONTROLLER_RATE"] = "2/min"
    assert [call_watch(controller).status_code == 429 for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("config", "host", "location"),
    [
        ({}, "127.0.0.1:8000", "http://127.0.0.1:8001"),
        ({"WEB_BIND": "0.0.0.0:8222"}, "localhost:8222", "http://localhost:8223"),
        ({"WATCH_BIND": "127.0.0.1:9000"}, "[::1]:8000", "http://[::1]:9000"),
        ({"WATCH_URL": "https://watch.example.org/"}, "127.0.0.1:8000", "https://watch.example.org"),
    ],
)
def test_a_web_process_redirects_to_the_watch_process(api, controller, settings, config, host, location):
    settings.CONFIG.update({"WEB_BIND": "127.0.0.1:8000", "WATCH_BIND": "", "WATCH_URL": ""} | config)
    response = api(controller).get(f"{WATCH}?since=7&wait=5", HTTP_HOST=host)
    assert (response.status_code, response["Location"]) == (307, f"{location}{WATCH}?since=7&wait=5")
    assert response["Cache-Control"] == "no-store"


def test_behind_a_tls_proxy_a_web_process_names_the_missing_route(api, controller, settings):
    settings.CONFIG["WATCH_URL"] = ""
    response = api(controller).get(WATCH, secure=True)
    assert (response.status_code, response.json()["code"]) == (421, "watch_not_routed")
    assert "must route /api/internal/watch to the watch process" in response.json()["message"]
    settings.CONFIG["WATCH_URL"] = "https://lcm.example.org:8443"
    response = api(controller).get(WATCH, secure=True)
    assert (response.status_code, response["Location"]) == (307, f"https://lcm.example.org:8443{WATCH}")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    plane = Plane(Path(tmp_path_factory.mktemp("watch")))
    yield plane
    plane.close()


class WatchCall:
    """A controller's long poll."""

    def __init__(self, plane, pool="cml-eu"):
        self.plane = plane
        self.headers = {"Authorization": f"Bearer {plane.known['controllers'][pool]}"}

    def get(self, **params):
        return httpx.get(f"{self.plane.watch_url}{WATCH}", params=params, headers=self.headers, timeout=40)

    def revision(self):
        return self.get().json()["revision"]

    async def wait(self, client, since, wait=20):
        started_at = time.monotonic()
        response = await client.get(
            f"{self.plane.watch_url}{WATCH}",
            params={"since": since, "wait": wait},
            headers=self.headers,
            timeout=40,
        )
        return response, time.monotonic() - started_at

    async def collect_changes(self, client, object_id, since):
        """Collect changes up to the response that contains this object."""
        changes = []
        async with asyncio.timeout(30):
            while object_id not in {each["id"] for each in changes}:
                response, _ = await self.wait(client, since)
                changes += response.json()["changes"]
                since = response.json()["revision"]
        return changes


@pytest.mark.integration
@pytest.mark.xdist_group("watch")
class TestRealServer:
    def test_a_change_reaches_the_watchers_of_its_pool_immediately(self, plane):
        eu_watcher, us_watcher = WatchCall(plane), WatchCall(plane, "cml-us")
        plane.serving("cml-eu")
        plane.serving("cml-us")
        settled = self.settled_revision(plane)

        async def scenario():
            async with httpx.AsyncClient() as client:
                notified = asyncio.create_task(eu_watcher.wait(client, settled))
                not_notified = asyncio.create_task(us_watcher.wait(client, settled, wait=4))
                await asyncio.sleep(0.5)
                session = await asyncio.to_thread(plane.request_session)
                (response, woken), (empty_response, waited) = await notified, await not_notified
                changes = response.json()["changes"]
                if session not in {each["id"] for each in changes}:
                    changes += await eu_watcher.collect_changes(client, session, response.json()["revision"])
                return changes, woken, empty_response, waited

        changes, woken, empty_response, waited = asyncio.run(scenario())
        assert woken < 20
        assert all(each["pool"] == "cml-eu" for each in changes)
        assert empty_response.json()["changes"] == []
        assert waited >= 3.9

    def test_waiting_uses_no_thread_and_no_connection(self, plane):
        watcher = WatchCall(plane)
        settled = self.settled_revision(plane)
        leader = plane.lcm.leader("lcm.asgi")
        (server,) = [pid for pid in plane.lcm.processes("lcm.asgi") if pid != leader]

        def cost():
            threads = len(os.listdir(f"/proc/{server}/task"))
            files = [os.readlink(f"/proc/{server}/fd/{fd}") for fd in os.listdir(f"/proc/{server}/fd")]
            return threads, sum("sqlite3" in name for name in files)

        async def scenario():
            limits = httpx.Limits(max_connections=200)
            async with httpx.AsyncClient(limits=limits) as client:
                polls = [asyncio.create_task(watcher.wait(client, settled, 6)) for _ in range(100)]
                await asyncio.sleep(3)
                during = await asyncio.to_thread(cost)
                return during, await asyncio.gather(*polls)

        (threads, files), responses = asyncio.run(scenario())
        assert all(response.status_code == 200 for response, _ in responses)
        assert threads < 45
        assert files < 45

    def test_a_web_process_redirects_to_the_watch_process(self, plane):
        response = httpx.get(f"{plane.url}{WATCH}", headers=WatchCall(plane).headers)
        assert (response.status_code, response.headers["Location"]) == (307, f"{plane.watch_url}{WATCH}")

    def test_too_old_and_too_new_revisions_are_gone(self, plane):
        watcher = WatchCall(plane)
        response = watcher.get(since=watcher.revision() + 1000)
        assert (response.status_code, response.json()["code"]) == (410, "gone")

    def test_without_redis_changes_arrive_by_polling(self, plane):
        watcher = WatchCall(plane)
        self.settled_revision(plane)
        Redis(unix_socket_path=str(embedded_valkey_socket(plane.lcm.data_dir))).shutdown(nosave=True)
        slot = plane.call("GET", "slots/?pool=cml-eu").json()["results"][0]["id"]
        before = watcher.revision()

        async def scenario():
            async with httpx.AsyncClient() as client:
                notified = asyncio.create_task(watcher.collect_changes(client, slot, before))
                await asyncio.sleep(0.3)
                body = {"deadline": "2030-01-01T00:00:00Z"}
                key = plane.known["controllers"]["cml-eu"]
                await asyncio.to_thread(plane.call, "POST", f"internal/slots/{slot}/interruption", body, key)
                return await notified

        changes = asyncio.run(scenario())
        assert {each["kind"] for each in changes if each["id"] == slot} == {"slot"}

    def settled_revision(self, plane):
        """Return the revision after a period without changes."""
        watcher, seen = WatchCall(plane), []

        def is_unchanged():
            seen.append(watcher.revision())
            time.sleep(0.3)
            return len(seen) > 4 and len(set(seen[-4:])) == 1

        wait_until(is_unchanged, "the feed has not changed for a while", 60)
        return seen[-1]
