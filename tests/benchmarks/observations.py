"""Observation posts per second and p99, compared with a plain insert; pages with much evidence.

Eight clients with persistent connections post over HTTP to four web processes. The floor is a DRF view in the
same server that authenticates and inserts the body as one row. “CPU ms” is the CPU time of the web processes
per post; it is less affected by other load than the elapsed time.
"""

from __future__ import annotations

import gc
import http.client
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier

from tests.benchmarks.measuring import Timing, measure, print_table, start_django

CLIENTS = 8
# Two per core: a connection stays with its process, and eight connections spread unevenly over two.
PROCESSES = 4
POSTS = {"postgresql": 1_600, "sqlite": 400}
WARM_UP = 160
SESSIONS = {"postgresql": 100_000, "sqlite": 20_000}
DEFINITIONS = 10_000
TIMES = 30

Post = tuple[str, bytes]


def main() -> None:
    os.environ["API_RATE"] = "10000000/min"
    start_django()
    from django.db import connection
    from django.utils import timezone

    from tests.benchmarks.fill_observations import ObservationFiller

    filler = ObservationFiller(timezone.now())
    _posts(filler)
    connection.close()
    _pages(filler)


def _posts(filler) -> None:  # type: ignore[no-untyped-def]
    from django.db import connection

    from tests.support.factories import make_controller

    vendor = connection.vendor
    count = POSTS[vendor]
    print(f"{vendor}: writing {count:,} sessions …", file=sys.stderr, flush=True)
    posts = _bodies(filler, count + WARM_UP)
    key = make_controller("bench", "pool:bench").key
    connection.close()
    rows = []
    with _web() as (address, pid):
        bare: list[Post] = [("/bench/bare", body) for _, body in posts]
        floor = _measure("bare DRF insert", bare, address, pid, key)
        real = _measure("observation", posts, address, pid, key)
        for each in (floor, real):
            ratio = f"{floor.rate / each.rate:.2f}"
            rows.append([each.name, f"{each.rate:.0f}", *each.cells, f"{each.cpu_ms:.1f}", ratio])
    size = len(posts[0][1]) / 1024
    print_table(
        f"Posting observations of 50 nodes ({size:.0f} KB), {CLIENTS} clients, {vendor}",
        ["post", "posts/s", "p50 ms", "p95 ms", "p99 ms", "web CPU ms", "floor ÷ it"],
        rows,
    )


def _bodies(filler, count: int) -> list[Post]:  # type: ignore[no-untyped-def]
    from tests.benchmarks.fill_observations import body_of

    chance = random.Random(3)
    posts = []
    for n, session in enumerate(filler.collecting(count)):
        first = 2000 + 2 * (n // 400)
        ports = {"r0_serial": first, "r1_serial": first + 1}
        body = body_of(session.status_since, ports, chance)
        path = f"/api/internal/lablet-sessions/{session.pk}/resource-observations"
        posts.append((path, json.dumps(body).encode()))
    chance.shuffle(posts)
    return posts


class ObservationFigures:
    def __init__(self, name: str, seconds: Sequence[float], wall: float, cpu: float) -> None:
        self.name, self.timing = name, Timing(list(seconds))
        self.rate, self.cpu_ms = len(seconds) / wall, cpu * 1000 / len(seconds)

    @property
    def cells(self) -> list[str]:
        return [f"{self.timing.percentile(share):.0f}" for share in (0.5, 0.95, 0.99)]


def _measure(name: str, posts: Sequence[Post], address: str, pid: int, key: str) -> ObservationFigures:
    """Warm up the connection of each client, then start all together."""
    starts: list[tuple[float, float]] = []

    def begin() -> None:
        starts.append((_cpu_of_children(pid), time.perf_counter()))

    ready = Barrier(CLIENTS, action=begin, timeout=60)
    with ThreadPoolExecutor(CLIENTS) as threads:
        shares = threads.map(lambda n: _send(posts[n::CLIENTS], address, key, ready), range(CLIENTS))
        seconds = [each for share in shares for each in share]
    (cpu, begun), ended = starts[0], time.perf_counter()
    return ObservationFigures(name, seconds, ended - begun, _cpu_of_children(pid) - cpu)


def _send(posts: Sequence[Post], address: str, key: str, ready: Barrier) -> list[float]:
    connection = http.client.HTTPConnection(address, timeout=60)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    seconds = []
    for number, (path, body) in enumerate(posts):
        if number == WARM_UP // CLIENTS:
            ready.wait()
            seconds.clear()
        begun = time.perf_counter()
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        text = response.read()
        seconds.append(time.perf_counter() - begun)
        assert response.status == 200, (response.status, text[:300])
    connection.close()
    return seconds


@contextmanager
def _web() -> Iterator[tuple[str, int]]:
    """Run web processes as in production, with the extra URL."""
    from tests.support.control_plane import free_address, wait_until

    address = free_address()
    env = {**os.environ, "WEB_BIND": str(address), "WEB_WORKERS": str(PROCESSES), "DATABASE_POOL_SIZE": "4"}
    command = ["gunicorn", "-c", "python:lcm.config.gunicorn", "tests.benchmarks.bare:application"]
    server = subprocess.Popen([sys.executable, "-m", *command], env=env)
    try:
        wait_until(lambda: _responds(str(address)), "the web processes respond")
        yield str(address), server.pid
    finally:
        server.terminate()
        server.wait(20)


def _responds(address: str) -> bool:
    try:
        connection = http.client.HTTPConnection(address, timeout=2)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False


def _cpu_of_children(pid: int) -> float:
    """Return the CPU seconds of the web processes so far."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _pages(filler) -> None:  # type: ignore[no-untyped-def]
    from django.db import connection

    from lcm.models import LabletDefinition
    from observations.services.aggregates import rebuild_definition

    vendor = connection.vendor
    count = SESSIONS[vendor]
    small = LabletDefinition.objects.get(name="lab-0000")
    floors = {name: _page(path) for name, path in _addresses(small).items()}
    print(
        f"{vendor}: {count:,} observed sessions, {DEFINITIONS:,} definitions …", file=sys.stderr, flush=True
    )
    lab = filler.popular(count)
    filler.many(DEFINITIONS)
    # A web process does this after loading all code.
    gc.collect()
    gc.freeze()
    rows = []
    for name, path in _addresses(lab).items():
        queries, timing = _page(path)
        ratio = timing.p95 / floors[name][1].p95
        rows.append([name, str(queries), f"{timing.p50:.0f}", f"{timing.p95:.0f}", f"{ratio:.2f}"])
    begun = time.perf_counter()
    differences = rebuild_definition(definition=lab, now=filler.now, check=True)
    full = time.perf_counter() - begun
    assert not differences, differences
    rows.append(["full computation, for comparison", "", f"{full * 1000:.0f}", "", ""])
    print_table(
        f"A definition with {count:,} observed sessions, {DEFINITIONS:,} definitions, {vendor}",
        ["page", "queries", "p50 ms", "p95 ms", "p95 ÷ p95 of a small one"],
        rows,
    )


def _addresses(lab) -> dict[str, str]:  # type: ignore[no-untyped-def]
    choices = "cpu_cores=recommended&memory_gb=p95&storage_gb=max"
    return {
        "definition": f"/definitions/{lab.pk}/",
        "its review": f"/definitions/{lab.pk}/review",
        "preview of a basis": f"/definitions/{lab.pk}/review/preview?{choices}",
        "aggregate over the API": f"/api/lablet-definitions/{lab.pk}/resource-observations",
        "its observed sessions": f"/observations/?definition={lab.pk}",
        "definitions by review priority": "/definitions/",
        "over-provisioned definitions": "/definitions/?class=over_provisioned",
        "definitions by waste": "/definitions/?sort=-assessment__waste_cpu",
    }


def _page(path: str):  # type: ignore[no-untyped-def]
    """Return the queries of one response and the timing of many; panels are requested like htmx does."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from lcm.models import User
    from tests.support.factories import Role, make_person

    user = User.objects.filter(username="bench-admin").first() or make_person("bench-admin", Role.ADMIN)
    client = Client()
    client.force_login(user)
    headers = {"HX-Request": "true"} if "/review" in path else {}

    def get() -> None:
        response = client.get(path, headers=headers)
        assert response.status_code == 200, (path, response.status_code)

    with CaptureQueriesContext(connection) as captured:
        get()
    return len(captured), measure(get, times=TIMES)


if __name__ == "__main__":
    main()
