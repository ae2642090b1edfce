"""A hanging Prometheus costs one timeout, then it is skipped for a while."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import time_machine

from observations.livestats import outages
from observations.livestats.cached_stats import busiest, kernel_live_stats
from observations.livestats.client import PrometheusClient
from observations.livestats.history import kernel_history
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.responses import PrometheusError
from observations.livestats.states import LiveState
from tests.support.fake_prometheus import ENOUGH, K1, K2, K3, healthy_response, run_fake_prometheus

LIMIT = 1.0
SKIPPED = "no response within 1 s; LCM retries after 20 s"


@contextmanager
def hanging() -> Iterator[tuple[str, list[socket.socket]]]:
    """A server that accepts connections and never responds; its address and its connections."""
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:

        def accept() -> None:
            while True:
                try:
                    connections.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", connections
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in connections:
        connection.close()


def reaches(connections, count):
    """Wait for connections, because the accepting thread may be late."""
    deadline = time.monotonic() + ENOUGH
    while len(connections) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(connections) == count


@pytest.fixture
def prometheus_at(settings):
    def configure(url, limit=LIMIT):
        settings.CONFIG |= {
            "PROMETHEUS_URL": url,
            "LIVE_STATS_CACHE_SECONDS": 0.0,
            "PROMETHEUS_TIMEOUT": limit,
        }

    return configure


def test_a_hanging_prometheus_is_queried_once_then_skipped_then_probed_by_one_caller(prometheus_at):
    with hanging() as (url, connections), time_machine.travel(datetime.now(UTC), tick=False) as clock:
        prometheus_at(url)
        first = kernel_live_stats([K1])
        assert (first.state, first.problems) == (LiveState.FAILED, ("no response within 1 s",))
        reaches(connections, 3)
        end = datetime.now(UTC)
        for _ in range(5):
            assert kernel_live_stats([K2]).problems == (SKIPPED,)
            assert busiest("cpu_util", 5).error == SKIPPED
            found = kernel_history([K1], start=end - timedelta(hours=1), end=end)
            assert (found.state, found.problems) == (LiveState.FAILED, (SKIPPED,))
        assert len(connections) == 3
        clock.shift(outages.PAUSE_SECONDS + 1)
        probes = threading.Barrier(8)

        def query_live_stats(number):
            probes.wait()
            return kernel_live_stats([K1, str(number)]).problems

        with ThreadPoolExecutor(8) as threads:
            problems = list(threads.map(query_live_stats, range(8)))
        assert sorted(problems) == sorted([("no response within 1 s",), *[(SKIPPED,)] * 7])
        reaches(connections, 6)


def test_many_chunks_share_one_timeout(prometheus_at, settings):
    """Only 16 queries run at a time; the others do not wait for a timeout of their own."""
    with hanging() as (url, connections):
        prometheus_at(url)
        settings.CONFIG["LIVE_STATS_CHUNK"] = 1
        assert kernel_live_stats([f"{number}" for number in range(40)]).state == LiveState.FAILED
        reaches(connections, 16)


def test_a_response_to_the_probe_ends_the_pause(prometheus_at):
    with run_fake_prometheus() as server, time_machine.travel(datetime.now(UTC), tick=False) as clock:
        prometheus_at(server.url, ENOUGH)
        outages.note_outage(PrometheusSettings.from_settings(), "no response within 1 s")
        assert (kernel_live_stats([K1]).problems, server.queries) == ((SKIPPED,), [])
        clock.shift(outages.PAUSE_SECONDS + 1)
        assert kernel_live_stats([K1]).state == LiveState.OK
        assert kernel_live_stats([K2]).problems == ()
        assert len(server.queries) == 6


def test_one_slow_query_among_successful_ones_starts_no_pause(prometheus_at):
    release = threading.Event()

    def respond(query):
        if query.kind == "rate":
            release.wait(ENOUGH)
        return healthy_response(query)

    with run_fake_prometheus(respond) as server:
        prometheus_at(server.url, 3.0)
        assert kernel_live_stats([K1]).state == LiveState.PARTIAL
        release.set()
        prometheus_at(server.url, ENOUGH)
        assert kernel_live_stats([K3]).problems == ()


def test_a_refused_connection_is_retried_at_once(prometheus_at):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    prometheus_at(url)
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        outages.note_outage(PrometheusSettings.from_settings(), "no response within 1 s")
        clock.shift(outages.PAUSE_SECONDS + 1)
        problems = [kernel_live_stats([kernel]).problems for kernel in (K1, K2)]
    assert all("LCM retries after" not in text for (text,) in problems)


@pytest.mark.parametrize(
    ("error", "is_skipped"),
    [(httpx.ReadTimeout, False), (httpx.ConnectTimeout, True)],
    ids=["slow", "no connection"],
)
def test_a_slow_history_starts_no_pause_unless_the_connection_hangs(prometheus_at, error, is_skipped):
    def fail(request):
        raise error("", request=request)

    async def query_once():
        options = PrometheusSettings.from_settings()
        async with PrometheusClient(options, transport=httpx.MockTransport(fail)) as client:
            with pytest.raises(PrometheusError, match="no response within"):
                await client.query_range("up", start=0, end=86_400, step=60)

    with run_fake_prometheus() as server:
        prometheus_at(server.url, ENOUGH)
        asyncio.run(query_once())
        assert (kernel_live_stats([K1]).state == LiveState.FAILED) is is_skipped
