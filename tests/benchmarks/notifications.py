"""Deliveries per second of 10,000 events to 5 endpoints, and the cost of an event at its source.

The floor of a delivery is a bare POST with the same body to the same receiver, five at a time. The cost at
the source compares ticks and observations with and without the mark of events to route, in alternation.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from unittest.mock import patch

from tests.benchmarks.measuring import print_table, start_django

EVENTS = {"postgresql": 10_000, "sqlite": 2_000}
ENDPOINTS = 5
POSTS = 5_000
TICK_SIZE = (1_000, 200)
TICKS = 15
OBSERVATIONS = 400


def main() -> None:
    start_django()
    from django.conf import settings
    from django.db import connection

    settings.CONFIG["WEBHOOK_ALLOWED_NETWORKS"] = [ip_network("127.0.0.0/8")]
    _cost_at_the_source(connection.vendor)
    _deliveries(connection.vendor)


def _deliveries(vendor: str) -> None:
    from django.db import connection
    from django.utils import timezone

    from lcm.models import Delivery, DeliveryState
    from lcm.services.delivery_run import deliver_due
    from lcm.services.event_routing import BATCH, route_events

    count = EVENTS[vendor]
    queries: Counter[str] = Counter()

    def counted(execute, *args):  # type: ignore[no-untyped-def]
        queries["all"] += 1
        return execute(*args)

    with _receiver() as url:
        _fill(count, url)
        routing = _seconds(lambda: _repeat(lambda: route_events(now=timezone.now()) == BATCH))
        body = Delivery.objects.first().payload.encode()  # type: ignore[union-attr]
        floor = POSTS / _seconds(lambda: asyncio.run(_bare_posts(url, body)))
        total = Delivery.objects.count()
        assert total == count * ENDPOINTS
        with connection.execute_wrapper(counted):
            sending = _seconds(lambda: _repeat(lambda: deliver_due(clock=timezone.now)))
    assert not Delivery.objects.exclude(state=DeliveryState.DELIVERED).exists()
    rate = total / sending
    print_table(
        f"{count:,} events to {ENDPOINTS} endpoints, {vendor}",
        ["step", "per s", "floor ÷ it"],
        [
            ["bare POST", f"{floor:,.0f} requests", "1.00"],
            ["send and record", f"{rate:,.0f} deliveries", f"{floor / rate:.2f}"],
            ["route", f"{count / routing:,.0f} events", ""],
        ],
    )
    print(f"\n{queries['all'] / total:.2f} queries for each delivery.")


def _fill(count: int, url: str) -> None:
    """Create the endpoints, a rule for each, and events of 100 sessions that are not routed."""
    from django.db import connection
    from django.utils import timezone

    from lcm.domain.actors import SYSTEM
    from lcm.models import ChangeLog
    from lcm.services.changelog import build_entry, log_changes
    from lcm.services.event_rules import create_rule
    from lcm.services.webhooks import create_webhook
    from tests.support.factories import make_definition, make_person, make_project, make_session

    now = timezone.now()
    owner = make_person("bench-owner")
    project, lab = make_project("bench", "events", owner), make_definition("bench-events", pool="cml-eu")
    sessions = [make_session(lab, project, owner, now=now) for _ in range(100)]
    ChangeLog._base_manager.filter(routed=False).update(routed=None)
    for number in range(ENDPOINTS):
        webhook, _ = create_webhook(name=f"bench-{number}", url=url, actor=SYSTEM, now=now)
        create_rule(name=f"bench-{number}", event_types=["session.*"], webhook=webhook, actor=SYSTEM, now=now)
    log_changes(
        build_entry(
            sessions[n % len(sessions)], actor=SYSTEM, event="session.ready", message="ready", now=now
        )
        for n in range(count)
    )
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


async def _bare_posts(url: str, body: bytes) -> None:
    """Send requests on one connection for each endpoint."""
    import httpx

    async def send(client: httpx.AsyncClient) -> None:
        for _ in range(POSTS // ENDPOINTS):
            response = await client.post(url, content=body)
            assert response.status_code == 204

    async with httpx.AsyncClient(trust_env=False) as client:
        await asyncio.gather(*(send(client) for _ in range(ENDPOINTS)))


@contextmanager
def _receiver() -> Iterator[str]:
    """Run the receiver in its own process."""
    from tests.support.control_plane import free_address, wait_until

    address = free_address()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.bare_receiver", str(address.port)], env=dict(os.environ)
    )
    try:
        wait_until(lambda: _connects(address.host, address.port), "the receiver responds")
        yield f"http://{address}/hook"
    finally:
        server.terminate()
        server.wait(20)


def _connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def _cost_at_the_source(vendor: str) -> None:
    rows = [
        _row("tick, 1,000 pending × 200 slots", *_compare(_ticks(), TICKS)),
        _row("observation of 50 nodes", *_compare(_observations(), OBSERVATIONS)),
    ]
    print_table(
        f"Cost of the mark of an event at its source, {vendor}",
        ["source", "without, ms", "with, ms", "with ÷ without"],
        rows,
    )


def _row(name: str, without: float, marked: float) -> list[str]:
    return [name, f"{without * 1000:.2f}", f"{marked * 1000:.2f}", f"{marked / without:.3f}"]


def _compare(steps: Iterator[Callable[[], object]], times: int) -> tuple[float, float]:
    """Return the shortest time of steps without and with the mark, after a warm-up of each."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * (times + 1)):
        # Pairs in alternating order, so that drift affects both alike.
        is_marked = (number + number // 2) % 2 == 0
        step = next(steps)
        if is_marked:
            taken = _seconds(step)
        else:
            with patch("lcm.services.changelog.event_types", dict):
                taken = _seconds(step)
        seconds[is_marked].append(taken)
    return min(seconds[False][1:]), min(seconds[True][1:])


def _ticks() -> Iterator[Callable[[], object]]:
    from django.utils import timezone

    from scheduling.capacity.runtimes.registry import runtime_for
    from scheduling.capacity.tick import scheduling_tick
    from scheduling.metrics import TickMetrics
    from tests.benchmarks.fill_capacity import CapacityFiller

    filler = CapacityFiller("ticks")
    pending, slots = TICK_SIZE
    while True:
        pool = filler.fill("READY", pending=pending, slots=slots)
        runtime = runtime_for(pool)
        yield lambda pool=pool, runtime=runtime: scheduling_tick(pool, runtime, timezone.now, TickMetrics())  # type: ignore[misc]


def _observations() -> Iterator[Callable[[], object]]:
    from django.utils import timezone

    from lcm.domain.actors import SYSTEM
    from observations.services.observation_recorder import record_observation
    from tests.benchmarks.fill_observations import ObservationFiller, body_of

    filler = ObservationFiller(timezone.now())
    chance = random.Random(3)
    for n, session in enumerate(filler.collecting(2 * (OBSERVATIONS + 1))):
        first = 2000 + 2 * (n // 400)
        body = body_of(session.status_since, {"r0_serial": first, "r1_serial": first + 1}, chance)
        text = json.dumps(body)
        yield lambda key=session.pk, body=body, text=text: record_observation(  # type: ignore[misc]
            session_id=key, body=body, text=text, actor=SYSTEM, now=timezone.now()
        )


def _repeat(step: Callable[[], object]) -> None:
    while step():
        pass


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
