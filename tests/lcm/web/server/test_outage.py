"""Requests of a process whose database does not respond or fails."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from django.db import IntegrityError, OperationalError
from django.http import HttpResponse
from django.test import Client
from django.urls import path

from lcm.domain.errors import DatabaseUnavailable
from lcm.web.error_pages import server_error
from lcm.web.server import database_health, middleware
from lcm.web.server import health as health_module
from lcm.web.server.database_health import DatabaseHealth, in_database_thread
from lcm.web.server.health import healthz, readyz
from tests.support.control_plane import wait_until

handled_paths: list[str] = []
blocked = threading.Event()
broken = threading.Event()


def echo(request):
    handled_paths.append(request.path)
    return HttpResponse(request.body)


def block(request):
    """Wait for the database as a thread does: until it responds or its connection breaks."""
    blocked.wait(30)
    if broken.is_set():
        raise OperationalError("server closed the connection unexpectedly")
    return HttpResponse("late")


def locked(request):
    raise OperationalError("database is locked")


def unreferenced(request):
    raise IntegrityError("FOREIGN KEY constraint failed")


urlpatterns = [
    path(name, view)
    for name, view in {
        "note": echo,
        "api/note": echo,
        "block": block,
        "page": locked,
        "api/locked": locked,
        "form": unreferenced,
        "api/call": unreferenced,
        "healthz": healthz,
        "readyz": readyz,
    }.items()
]
handler500 = server_error
pytestmark = pytest.mark.urls(__name__)


@pytest.fixture
def health(monkeypatch):
    health = DatabaseHealth()
    for module in (database_health, health_module, middleware):
        monkeypatch.setattr(module, "health", health)
    handled_paths.clear()
    return health


@pytest.fixture
def database(monkeypatch, health):
    """A database whose probes return `problem[0]`; requests wait 50 ms before they probe."""
    problem = ["connection refused"]

    async def probe():
        return problem[0]

    def break_connection(database):
        broken.set()
        blocked.set()

    monkeypatch.setattr(database_health, "probe_database", probe)
    monkeypatch.setattr(database_health, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(database_health, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(database_health, "RECOVERY_SECONDS", 0.01)
    monkeypatch.setattr(database_health, "_check_pool", lambda: None)
    monkeypatch.setattr(database_health, "_close_pool", lambda: None)
    monkeypatch.setattr(database_health, "_break_connection", break_connection)
    blocked.clear()
    broken.clear()
    yield problem
    problem[0] = ""
    blocked.set()


@pytest.fixture
def send(settings):
    """Return status and body of a response of LCM's middleware for the database."""
    settings.MIDDLEWARE = ["lcm.web.server.middleware.DatabaseHealthMiddleware"]
    client = Client(raise_request_exception=False)

    def call(where, body=b"", method="post"):
        if method == "post":
            response = client.post(where, body, content_type="text/plain")
        else:
            response = client.get(where)
        return response.status_code, response.content

    return call


def test_requests_are_rejected_while_the_database_is_unavailable_and_never_run_later(send, health, database):
    with ThreadPoolExecutor(1) as threads:
        futures = [threads.submit(send, path) for path in ("/block", "/note", "/api/note")]
        refused = [each.result(20) for each in futures]
    assert [status for status, _ in refused] == [503, 503, 503]
    assert b"The database does not respond." in refused[0][1]
    assert b'"code": "unavailable"' in refused[2][1]
    assert send("/healthz", method="get") == (200, b"ok")
    assert handled_paths == []
    database[0] = ""
    wait_until(lambda: not health.is_unavailable, "the database is back")
    assert send("/note", b"back") == (200, b"back")
    assert handled_paths == ["/note"]


def test_a_long_request_is_not_interrupted_while_the_database_responds(send, health, database):
    database[0] = ""
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(send, "/block")
        time.sleep(0.3)
        assert not future.done()
        blocked.set()
        assert future.result(20) == (200, b"late")


@pytest.mark.parametrize(
    ("where", "status", "text"),
    [
        ("/page", 503, b"The database does not respond."),
        ("/api/locked", 503, b"The database does not respond."),
        ("/form", 409, b"Another request deleted an object"),
        ("/api/call", 409, b"Another request deleted an object"),
    ],
)
def test_a_database_error_is_503_and_a_failed_foreign_key_409(send, database, where, status, text):
    database[0] = ""
    response_status, body = send(where)
    assert (response_status, text in body) == (status, True)


def test_a_database_error_starts_a_probe(send, health, database):
    assert send("/page")[0] == 503
    wait_until(lambda: health.is_unavailable, "the probe failed")


def test_readiness_responds_in_time_even_if_checks_block(send, database, monkeypatch):
    database[0] = ""
    monkeypatch.setattr(health_module, "READY_SECONDS", 0.05)
    monkeypatch.setitem(health_module.CHECKS, "database", lambda: str(blocked.wait(30)))
    status, body = send("/readyz", method="get")
    assert (status, json.loads(body)["ready"]) == (503, False)


def test_work_in_a_thread_ends_when_the_database_is_unavailable(health, database):
    async def scenario():
        with pytest.raises(DatabaseUnavailable):
            await in_database_thread(lambda: block(None))
        assert health.is_unavailable
        with pytest.raises(DatabaseUnavailable):
            await in_database_thread(lambda: handled_paths.append("late"))

    asyncio.run(scenario())
    assert handled_paths == []


@pytest.mark.parametrize(("responds", "problem"), [(True, ""), (False, "no response within 0.16 s")])
def test_a_probe_gets_more_time_while_the_event_loop_is_busy(monkeypatch, responds, problem):
    async def connect():
        for _ in range(5 if responds else 1000):
            await asyncio.sleep(0.001)
        return ""

    async def keep_loop_busy():
        while True:
            time.sleep(0.06)
            await asyncio.sleep(0)

    async def scenario():
        busy = asyncio.create_task(keep_loop_busy())
        found = await database_health.probe_database()
        busy.cancel()
        return found

    monkeypatch.setattr(database_health, "connection", SimpleNamespace(vendor="postgresql"))
    monkeypatch.setattr(database_health, "_connect", connect)
    monkeypatch.setattr(database_health, "PROBE_SECONDS", 0.16)
    assert asyncio.run(scenario()) == problem
