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
from tests.support.watch_server import WATCH, ask_watch


@pytest.fixture(params=["web", "watch"])
def ask(request, api, transactional_db):
    """Call the watch of a web process, and of the watch process."""

    def call(caller, query="", method="get"):
        path = f"{WATCH}{query}"
        if request.param == "web":
            return getattr(api(caller), method)(path)
        key = make_person_token(caller).key if isinstance(caller, User) else caller.key if caller else ""
        return ask_watch(path, key=key, method=method.upper())

    return call


@pytest.mark.parametrize(
    "query", ["since=x", "since=-1", "since=" + "9" * 30, "wait=31", "wait=-1", "wait=nan"]
)
def test_invalid_parameters_are_rejected(ask, controller, query):
    answer = ask(controller, f"?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_people_and_anonymous_callers_are_refused(ask, admin):
    assert ask(None).status_code == 401
    assert ask(admin).status_code == 403


def test_only_get_is_allowed(ask, controller):
    answer = ask(controller, method="post")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_a_controller_is_limited_to_its_rate(ask, controller, settings, one_window):
    settings.CONFIG["CONTROLLER_RATE"] = "2/min"
    assert [ask(controller).status_code == 429 for _ in range(3)] == [False, False, True]


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
    answer = api(controller).get(f"{WATCH}?since=7&wait=5", HTTP_HOST=host)
    assert (answer.status_code, answer["Location"]) == (307, f"{location}{WATCH}?since=7&wait=5")
    assert answer["Cache-Control"] == "no-store"


def test_behind_a_tls_proxy_a_web_process_names_the_missing_route(api, controller, settings):
    settings.CONFIG["WATCH_URL"] = ""
    answer = api(controller).get(WATCH, secure=True)
    assert (answer.status_code, answer.json()["code"]) == (421, "watch_not_routed")
    assert "must route /api/internal/watch to the watch process" in answer.json()["message"]
    settings.CONFIG["WATCH_URL"] = "https://lcm.example.org:8443"
    answer = api(controller).get(WATCH, secure=True)
    assert (answer.status_code, answer["Location"]) == (307, f"https://lcm.example.org:8443{WATCH}")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    made = Plane(Path(tmp_path_factory.mktemp("watch")))
    yield made
    made.close()


class Watcher:
    """A controller's long poll."""

    def __init__(self, plane, pool="cml-eu"):
        self.plane = plane
        self.headers = {"Authorization": f"Bearer {plane.known['controllers'][pool]}"}

    def get(self, **params):
        return httpx.get(f"{self.plane.watch_url}{WATCH}", params=params, headers=self.headers, timeout=40)

    def revision(self):
        return self.get().json()["revision"]

    async def wait(self, client, since, wait=20):
        begun = time.monotonic()
        answer = await client.get(
            f"{self.plane.watch_url}{WATCH}",
            params={"since": since, "wait": wait},
            headers=self.headers,
            timeout=40,
        )
        return answer, time.monotonic() - begun

    async def hear(self, client, thing, since):
        """Collect changes up to the response that contains this object."""
        changes = []
        async with asyncio.timeout(30):
            while thing not in {each["id"] for each in changes}:
                answer, _ = await self.wait(client, since)
                changes += answer.json()["changes"]
                since = answer.json()["revision"]
        return changes


@pytest.mark.integration
@pytest.mark.xdist_group("watch")
class TestRealServer:
    def test_a_change_reaches_the_watchers_of_its_pool_immediately(self, plane):
        mine, other = Watcher(plane), Watcher(plane, "cml-us")
        plane.serving("cml-eu")
        plane.serving("cml-us")
        settled = self.quiet(plane)

        async def scene():
            async with httpx.AsyncClient() as client:
                heard = asyncio.create_task(mine.wait(client, settled))
                deaf = asyncio.create_task(other.wait(client, settled, wait=4))
                await asyncio.sleep(0.5)
                session = await asyncio.to_thread(plane.request_session)
                (answer, woken), (silence, waited) = await heard, await deaf
                changes = answer.json()["changes"]
                if session not in {each["id"] for each in changes}:
                    changes += await mine.hear(client, session, answer.json()["revision"])
                return changes, woken, silence, waited

        changes, woken, silence, waited = asyncio.run(scene())
        assert woken < 20
        assert all(each["pool"] == "cml-eu" for each in changes)
        assert silence.json()["changes"] == []
        assert waited >= 3.9

    def test_waiting_uses_no_thread_and_no_connection(self, plane):
        watcher = Watcher(plane)
        settled = self.quiet(plane)
        leader = plane.lcm.leader("lcm.asgi")
        (server,) = [pid for pid in plane.lcm.processes("lcm.asgi") if pid != leader]

        def cost():
            threads = len(os.listdir(f"/proc/{server}/task"))
            files = [os.readlink(f"/proc/{server}/fd/{fd}") for fd in os.listdir(f"/proc/{server}/fd")]
            return threads, sum("sqlite3" in name for name in files)

        async def scene():
            limits = httpx.Limits(max_connections=200)
            async with httpx.AsyncClient(limits=limits) as client:
                polls = [asyncio.create_task(watcher.wait(client, settled, 6)) for _ in range(100)]
                await asyncio.sleep(3)
                during = await asyncio.to_thread(cost)
                return during, await asyncio.gather(*polls)

        (threads, files), answers = asyncio.run(scene())
        assert all(answer.status_code == 200 for answer, _ in answers)
        assert threads < 45
        assert files < 45

    def test_a_web_process_redirects_to_the_watch_process(self, plane):
        answer = httpx.get(f"{plane.url}{WATCH}", headers=Watcher(plane).headers)
        assert (answer.status_code, answer.headers["Location"]) == (307, f"{plane.watch_url}{WATCH}")

    def test_too_old_and_too_new_revisions_are_gone(self, plane):
        watcher = Watcher(plane)
        answer = watcher.get(since=watcher.revision() + 1000)
        assert (answer.status_code, answer.json()["code"]) == (410, "gone")

    def test_without_redis_changes_arrive_by_polling(self, plane):
        watcher = Watcher(plane)
        self.quiet(plane)
        Redis(unix_socket_path=str(embedded_valkey_socket(plane.lcm.data_dir))).shutdown(nosave=True)
        slot = plane.call("GET", "slots/?pool=cml-eu").json()["results"][0]["id"]
        before = watcher.revision()

        async def scene():
            async with httpx.AsyncClient() as client:
                heard = asyncio.create_task(watcher.hear(client, slot, before))
                await asyncio.sleep(0.3)
                body = {"deadline": "2030-01-01T00:00:00Z"}
                key = plane.known["controllers"]["cml-eu"]
                await asyncio.to_thread(plane.call, "POST", f"internal/slots/{slot}/interruption", body, key)
                return await heard

        changes = asyncio.run(scene())
        assert {each["kind"] for each in changes if each["id"] == slot} == {"slot"}

    def quiet(self, plane):
        """The revision after a period without changes."""
        watcher, seen = Watcher(plane), []

        def still():
            seen.append(watcher.revision())
            time.sleep(0.3)
            return len(seen) > 4 and len(set(seen[-4:])) == 1

        wait_until(still, "the feed is quiet", 60)
        return seen[-1]
