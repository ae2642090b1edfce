"""Requests over ASGI: each runs in one thread of the process."""

import asyncio
import json
import threading
import time
from types import SimpleNamespace

import pytest
from django.core import signals
from django.db import IntegrityError, OperationalError
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

from lcm.web.error_pages import server_error
from lcm.web.server import asgi_handler as module
from lcm.web.server import database_health
from lcm.web.server.asgi_handler import ThreadedAsgiHandler
from lcm.web.server.health import healthz

seen: list[str] = []
blocked = threading.Event()


def note(request):
    seen.append(threading.current_thread().name)
    return HttpResponse(request.body)


def stream(request):
    async def parts():
        for part in (b"a", b"b"):
            yield part

    return StreamingHttpResponse(parts())


def fail(request):
    raise RuntimeError("oh")


def block(request):
    blocked.wait(30)
    return HttpResponse("late")


def locked(request):
    raise OperationalError("database is locked")


def unreferenced(request):
    raise IntegrityError("FOREIGN KEY constraint failed")


urlpatterns = [
    path(name, view)
    for name, view in {
        "note": note,
        "stream": stream,
        "fail": fail,
        "block": block,
        "page": locked,
        "api/locked": locked,
        "form": unreferenced,
        "api/call": unreferenced,
        "healthz": healthz,
        "static/note": note,
        "readyz": block,
    }.items()
]
handler500 = server_error
pytestmark = pytest.mark.urls(__name__)


@pytest.fixture
def handler(settings):
    settings.CONFIG["WEB_THREADS"] = 1
    settings.MIDDLEWARE = []
    seen.clear()
    return ThreadedAsgiHandler()


@pytest.fixture
def finished():
    """The threads in which requests ended."""
    ended: list[str] = []

    def end(**kwargs):
        ended.append(threading.current_thread().name)

    signals.request_finished.connect(end)
    yield ended
    signals.request_finished.disconnect(end)


async def ask(handler, where, body=b"", method="POST"):
    """Return status and body of a response."""
    sent = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    headers = [(b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": method, "path": where, "headers": headers, "query_string": b""}
    await handler(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_requests_share_the_threads_of_the_process(handler, finished):
    async def several():
        return await asyncio.gather(*(ask(handler, "/note", str(n).encode()) for n in range(5)))

    assert asyncio.run(several()) == [(200, str(n).encode()) for n in range(5)]
    assert set(seen) == {"request_0"}
    assert finished == seen


def test_a_stream_is_sent_completely_and_closed(handler, finished):
    assert asyncio.run(ask(handler, "/stream")) == (200, b"ab")
    assert len(finished) == 1


def test_an_error_is_a_response_and_the_thread_continues(handler, finished):
    assert asyncio.run(ask(handler, "/fail"))[0] == 500
    assert asyncio.run(ask(handler, "/note"))[0] == 200
    assert len(finished) == 2


def test_a_client_that_disconnects_early_gets_no_response(handler, finished):
    async def left():
        async def receive():
            return {"type": "http.disconnect"}

        await handler({"type": "http", "method": "POST", "path": "/note", "headers": []}, receive, None)

    asyncio.run(left())
    assert (seen, finished) == ([], [])


@pytest.fixture
def database(monkeypatch):
    """A database whose probes return `problem[0]`; requests wait 50 ms before they probe."""
    problem = ["it is away"]

    async def probe():
        return problem[0]

    monkeypatch.setattr(database_health, "probe_database", probe)
    monkeypatch.setattr(database_health, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(database_health, "RECOVERY_SECONDS", 0.01)
    monkeypatch.setattr(database_health, "_check_pool", lambda: None)
    blocked.clear()
    yield problem
    blocked.set()


def test_requests_are_rejected_while_the_database_is_unavailable_and_never_run_later(handler, database):
    async def scene():
        waiting = [asyncio.create_task(ask(handler, path)) for path in ("/block", "/note")]
        refused = [await each for each in waiting]
        refused.append(await ask(handler, "/api/note"))
        assert [status for status, _ in refused] == [503, 503, 503]
        assert b"The database does not answer." in refused[0][1]
        assert b'"code": "unavailable"' in refused[2][1]
        assert await ask(handler, "/healthz", method="GET") == (200, b"ok")
        assert (await ask(handler, "/static/note", b"x")) == (200, b"x")
        seen.clear()
        blocked.set()
        database[0] = ""
        while database_health.health.is_unavailable:
            await asyncio.sleep(0.01)
        assert (await ask(handler, "/note", b"back")) == (200, b"back")
        # The rejected request was dropped before a thread had started it.
        assert len(seen) == 1

    asyncio.run(scene())


def test_a_long_request_is_not_cancelled_while_the_database_responds(handler, database):
    async def scene():
        database[0] = ""
        waiting = asyncio.create_task(ask(handler, "/block"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        blocked.set()
        assert await waiting == (200, b"late")

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("where", "status", "text"),
    [
        ("/page", 503, b"The database does not answer."),
        ("/api/locked", 503, b"The database does not answer."),
        ("/form", 409, b"Another request deleted an object"),
        ("/api/call", 409, b"Another request deleted an object"),
    ],
)
def test_a_database_error_is_503_and_a_failed_foreign_key_409(handler, database, where, status, text):
    database[0] = ""
    answered, body = asyncio.run(ask(handler, where))
    assert (answered, text in body) == (status, True)


def test_readiness_responds_in_time_even_if_checks_block(handler, database, monkeypatch):
    monkeypatch.setattr(module, "READY_SECONDS", 0.05)
    status, body = asyncio.run(ask(handler, "/readyz", method="GET"))
    assert (status, json.loads(body)["ready"]) == (503, False)


@pytest.mark.parametrize(("answers", "problem"), [(True, ""), (False, "no answer within 0.16 s")])
def test_a_probe_gets_more_time_while_the_event_loop_is_busy(monkeypatch, answers, problem):
    async def connect():
        for _ in range(5 if answers else 1000):
            await asyncio.sleep(0.001)
        return ""

    async def keep_loop_busy():
        while True:
            time.sleep(0.06)
            await asyncio.sleep(0)

    async def scene():
        busy = asyncio.create_task(keep_loop_busy())
        found = await database_health.probe_database()
        busy.cancel()
        return found

    monkeypatch.setattr(database_health, "connection", SimpleNamespace(vendor="postgresql"))
    monkeypatch.setattr(database_health, "_connect", connect)
    monkeypatch.setattr(database_health, "PROBE_SECONDS", 0.16)
    assert asyncio.run(scene()) == problem
