"""Web and watch processes return 503 in time while PostgreSQL is silent or refuses connections."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from django.db import connection

from lcm.supervisor import processes
from lcm.supervisor.child_process import die_with_parent
from lcm.web.server.database_health import CHECK_SECONDS, PATIENCE_SECONDS, PROBE_SECONDS
from tests.support.control_plane import ROOT, free_address, wait_until
from tests.support.environment import clean_environment

pytestmark = [pytest.mark.postgres, pytest.mark.integration, pytest.mark.django_db(transaction=True)]

THREADS = 2
# The promised limits in seconds; a loaded machine may take three times as long.
RESPONSE_SECONDS, READINESS_SECONDS = 2.0, 3.0
LOAD_FACTOR = 3

WATCH = "/api/internal/watch"
BEARER = {"Authorization": "Bearer unknown"}
COOKIE = {"Cookie": "lcm_session=" + "x" * 32}
# Each request needs the database: path, headers, status when the database responds.
REQUESTS = [
    ("/sessions/", COOKIE, 302),
    ("/api/users/", BEARER, 401),
    (f"{WATCH}?wait=0", BEARER, 401),
]


@dataclass
class DatabaseProxy:
    """A TCP proxy in front of PostgreSQL that can stop forwarding, or refuse connections."""

    upstream: tuple[str, int]
    port: int = field(default_factory=lambda: free_address().port)
    flowing: threading.Event = field(default_factory=threading.Event)
    listener: socket.socket | None = None
    sockets: list[socket.socket] = field(default_factory=list)

    def open(self) -> None:
        self.flowing.set()
        if self.listener is None:
            self.listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def freeze(self) -> None:
        """Behave like a server in SIGSTOP: accept connections and send nothing."""
        self.flowing.clear()

    def refuse(self) -> None:
        """Behave like a stopped server: close connections and refuse new ones."""
        assert self.listener is not None
        listener, self.listener = self.listener, None
        for each in [listener, *self.sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.sockets.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self.upstream)
                self.sockets += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.flowing.wait()
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def database(transactional_db: None) -> Iterator[DatabaseProxy]:
    settings = connection.settings_dict
    proxy = DatabaseProxy((settings["HOST"], int(settings["PORT"])))
    proxy.open()
    yield proxy
    proxy.flowing.set()
    if proxy.listener:
        proxy.refuse()


@dataclass
class Servers:
    """URLs of one web process with two request threads and of the watch process."""

    web: str
    watch: str

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        base = self.watch if path.startswith(WATCH) else self.web
        return httpx.get(base + path, headers=headers, timeout=60)

    def get_from_watch(self, path: str) -> httpx.Response:
        return httpx.get(self.watch + path, timeout=60)


@pytest.fixture
def servers(database: DatabaseProxy, tmp_path: Path) -> Iterator[Servers]:
    """Web and watch process on the proxied database."""
    settings = {**connection.settings_dict, "HOST": "127.0.0.1", "PORT": database.port}
    web, watch = free_address(), free_address()
    env = clean_environment(
        DATABASE_URL="postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**settings),
        DATABASE_POOL_SIZE=str(THREADS),
        DATA_DIR=str(tmp_path),
        REDIS_URL=os.environ["REDIS_URL"],
        WEB_BIND=str(web),
        WATCH_BIND=str(watch),
        WEB_WORKERS="1",
        WEB_THREADS=str(THREADS),
        LOGIN_FAILURE_RATE="1000/min",
    )
    with (tmp_path / "log").open("wb") as log:
        running = [
            subprocess.Popen(
                child.argv, cwd=ROOT, env=env, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
            for child in (processes.web(env), processes.watch(env))
        ]
    try:
        yield Servers(f"http://{web}", f"http://{watch}")
        assert [process.poll() for process in running] == [None, None]
    finally:
        for process in running:
            process.terminate()
            process.wait()


def all_requests_work(servers: Servers) -> bool:
    with suppress(httpx.TransportError):
        return [servers.get(path, headers).status_code for path, headers, _ in REQUESTS] == [
            status for _, _, status in REQUESTS
        ]
    return False


def assert_rejected_without_database(servers: Servers) -> None:
    """Send more requests than there are threads, and probes besides."""
    with ThreadPoolExecutor(10) as callers:
        refused = [callers.submit(servers.get, path, headers) for path, headers, _ in REQUESTS * 2]
        probes = [
            (callers.submit(get, "/healthz"), callers.submit(get, "/readyz"))
            for get in (servers.get, servers.get_from_watch)
        ]
    for response in [each.result() for each in refused]:
        assert response.status_code == 503, response.text
        assert response.elapsed.total_seconds() < RESPONSE_SECONDS * LOAD_FACTOR
        assert response.headers["Retry-After"] == "5"
        if "/api/" in str(response.url):
            text = "The database does not respond. Try again in a few seconds."
            assert response.json() == {"code": "unavailable", "message": text, "details": {}}
        else:
            assert "The database does not respond." in response.text
    for alive, ready in probes:
        assert (alive.result().status_code, alive.result().text) == (200, "ok")
        assert alive.result().elapsed.total_seconds() < RESPONSE_SECONDS
        assert ready.result().elapsed.total_seconds() < READINESS_SECONDS * LOAD_FACTOR
        assert ready.result().status_code == 503
        assert ready.result().json()["checks"]["database"].startswith("the database does not respond: ")


def test_requests_are_rejected_in_time_and_work_again_when_the_database_recovers(servers, database, tmp_path):
    assert PATIENCE_SECONDS + CHECK_SECONDS + PROBE_SECONDS < RESPONSE_SECONDS

    def log() -> str:
        return (tmp_path / "log").read_text(errors="replace")[-3000:]

    wait_until(lambda: all_requests_work(servers), "requests work", details=log)
    for fail in (database.freeze, database.refuse):
        fail()
        assert_rejected_without_database(servers)
        assert_rejected_without_database(servers)
        database.open()
        wait_until(lambda: all_requests_work(servers), "requests work again", 60, log)
