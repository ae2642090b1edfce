"""Open watches: delay of a change notification, and cost of waiting."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from uuid import uuid4

from tests.benchmarks.measuring import Timing, print_table, start_django
from tests.benchmarks.planes import cpu_seconds_of, megabytes_of, running_plane, threads_of, watch_workers

ROUNDS = 12
SIZES = (1, 100, 500)


class WatchClient:
    """A long poll over a plain socket, so that the client does not affect the measurement."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self.host, self.port, self.key = host, port, key

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def poll(self, query: str = "") -> dict[str, object]:
        head = [f"GET /api/internal/watch{query} HTTP/1.1", f"Host: {self.host}"]
        head += [f"Authorization: Bearer {self.key}", "", ""]
        self.writer.write("\r\n".join(head).encode())
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        assert " 200 " in lines[0], lines[0]
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
        found: dict[str, object] = json.loads(await self.reader.readexactly(length))
        return found


async def measured(watchers: list[WatchClient], change: object) -> Timing:
    """Return the seconds from the start of a change's transaction to its arrival at each watcher."""
    seconds: list[float] = []
    revision = (await watchers[0].poll())["revision"]
    for number in range(ROUNDS + 1):
        polls = [asyncio.create_task(each.poll(f"?since={revision}&wait=30")) for each in watchers]
        await asyncio.sleep(1 + len(watchers) / 100)
        begun = time.perf_counter()
        arrived: list[float] = []
        for poll in polls:
            poll.add_done_callback(lambda _, to=arrived: to.append(time.perf_counter()))
        await asyncio.to_thread(change)  # type: ignore[arg-type]
        responses = await asyncio.gather(*polls)
        revision = max(int(str(response["revision"])) for response in responses)
        if number:
            seconds += [at - begun for at in arrived]
    return Timing(seconds)


def main() -> None:
    start_django()
    from django.db import close_old_connections, connection
    from django.utils import timezone

    from lcm.domain.actors import SYSTEM
    from lcm.events.change_feed import append_slot_changes
    from lcm.models import TokenKind
    from lcm.services.tokens import create_token

    now = timezone.now()
    _, key = create_token(
        name="watch",
        kind=TokenKind.CONTROLLER,
        scopes=["pool:bench"],
        expires_at=now + timedelta(days=1),
        actor=SYSTEM,
        now=now,
    )

    def change() -> None:
        append_slot_changes([(uuid4(), "bench")], now=timezone.now())
        close_old_connections()

    rows = []
    vendor = connection.vendor
    close_old_connections()
    with running_plane() as plane:
        pids = watch_workers(plane)
        for size in SIZES:
            watchers = [
                WatchClient(plane.watch_address.host, plane.watch_address.port, key) for _ in range(size)
            ]

            async def run(watchers: list[WatchClient] = watchers) -> tuple[Timing, int, float, float]:
                await asyncio.gather(*(each.connect() for each in watchers))
                job = asyncio.create_task(measured(watchers, change))
                before = sum(map(cpu_seconds_of, pids))
                await asyncio.sleep(1 + len(watchers) / 120)
                threads, memory = threads_of(pids), megabytes_of(pids)
                timing = await job
                busy = (sum(map(cpu_seconds_of, pids)) - before) / (ROUNDS + 1)
                return timing, threads, memory, busy

            timing, threads, memory, busy = asyncio.run(run())
            latency = [f"{timing.percentile(share):.0f}" for share in (0.5, 0.95, 0.99)]
            rows.append([f"{size:,}", *latency, f"{busy * 1000:.0f}", str(threads), f"{memory:.0f}"])
    heads = ["waiting", "p50 ms", "p95 ms", "p99 ms", "CPU ms of the watch a round", "threads", "MB"]
    print_table(f"Delay from a change to its watchers, {vendor}", heads, rows)


if __name__ == "__main__":
    main()
