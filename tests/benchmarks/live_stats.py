"""Live statistics of thousands of kernels on a real Prometheus, compared with queries by curl."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from lcm.supervisor.child_process import die_with_parent
from tests.benchmarks.measuring import Timing, measure, print_table, start_django
from tests.support.control_plane import free_address, wait_until
from tests.support.prometheus import PrometheusServer, prometheus_server

SIZES = (500, 5_000)
NODES_A_SESSION = 10
SCRAPE_SECONDS = 5.0
WINDOW = 30.0
TIMES = 5
GAUGES = {
    "cpu_util": {"current": 0.7, "capacity": 2, "pct": 35},
    "mem": {"current": 1.5e9, "capacity": 4e9, "pct": 37.5},
    "disk": {"current": 8e8, "capacity": 8e9},
}


def exposition(ids: list[UUID]) -> bytes:
    """Return the metrics of a controller with this many running kernels."""
    lines = []
    for number, kernel in enumerate(ids):
        labels = f'kernel_id="{kernel}",session_id="{UUID(int=number // NODES_A_SESSION)}"'
        lines.append(f"lcm_kernel_observed_timestamp_seconds{{{labels}}} {time.time()}")
        for metric, values in GAUGES.items():
            lines += [
                f'lcm_kernel_utilization{{{labels},metric="{metric}",value_type="{kind}"}} {value}'
                for kind, value in values.items()
            ]
        lines += [
            f'lcm_kernel_bytes_total{{{labels},metric="{metric}"}} {number * 1000}'
            for metric in ("disk_read", "disk_write", "net_rx", "net_tx")
        ]
    return ("\n".join(lines) + "\n").encode()


@contextmanager
def exporter(content: bytes) -> Iterator[str]:
    """Serve constant metrics in a separate process, so that it does not affect the measurement."""
    address = free_address()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "metrics").write_bytes(content)
        command = [sys.executable, "-m", "http.server", "--bind", address.host, str(address.port)]
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        try:
            yield str(address)
        finally:
            process.kill()
            process.wait()


def with_curl(server: PrometheusServer, queries: list[str]) -> Timing:
    """Run the three queries for all kernels concurrently with curl and discard the results."""
    with tempfile.TemporaryDirectory() as folder:
        forms = [Path(folder) / str(number) for number in range(len(queries))]
        for path, query in zip(forms, queries, strict=True):
            path.write_text(query)

        def query() -> None:
            url = f"{server.url}/api/v1/query"
            commands = [
                ["curl", "-sf", "-o", "/dev/null", "--data-urlencode", f"query@{form}", url] for form in forms
            ]
            running = [subprocess.Popen(command) for command in commands]
            assert [each.wait() for each in running] == [0] * len(running)

        return measure(query, times=TIMES, warm_up=1)


def main() -> None:
    start_django()
    from django.conf import settings
    from rest_framework.test import APIClient

    from lcm.domain.roles import Role
    from observations.livestats.live_stats import query_kernel_live_stats
    from observations.livestats.prometheus_settings import PrometheusSettings
    from observations.livestats.promql import Queries
    from tests.support.factories import make_person

    ids = [UUID(int=number + 1, version=4) for number in range(max(SIZES))]
    client = APIClient()
    client.force_login(make_person("bench", Role.VIEWER))
    rows = []
    with exporter(exposition(ids)) as address:
        job = {"job_name": "bench", "static_configs": [{"targets": [address]}]}
        with prometheus_server([job], scrape_seconds=SCRAPE_SECONDS) as server:
            options = PrometheusSettings(
                url=server.url, window=WINDOW, scrape_interval=SCRAPE_SECONDS, timeout=60
            )
            settings.CONFIG |= {
                "PROMETHEUS_URL": server.url,
                "PROMETHEUS_TIMEOUT": 60.0,
                "LIVE_STATS_CACHE_SECONDS": 0.0,
                "LIVE_STATS_WINDOW": WINDOW,
                "API_RATE": "100000/min",
            }
            wait_until(lambda: _samples(server) >= WINDOW / SCRAPE_SECONDS, "the window is full", 180)
            queries = Queries(window=WINDOW)
            for size in SIZES:
                some = [str(each) for each in ids[:size]]
                body = json.dumps({"kernels": some})

                def query(some: list[str] = some) -> None:
                    found = asyncio.run(query_kernel_live_stats(some, options))
                    assert not found.problems, found.problems
                    assert all(len(each.metrics) == 7 for each in found.kernels.values())

                def call(body: str = body) -> None:
                    response = client.post("/api/live-stats", body, content_type="application/json")
                    assert response.status_code == 200

                print(f"{size:,} kernels …", flush=True)
                bare = with_curl(server, [queries.gauges(some), queries.diffs(some), queries.rates(some)])
                ours, api = measure(query, times=TIMES, warm_up=1), measure(call, times=TIMES, warm_up=1)
                figures = [f"{each:.0f}" for each in (bare.p50, ours.p50, ours.p95, api.p50)]
                rows.append(
                    [f"{size:,}", *figures, f"{ours.p50 / bare.p50:.2f}", f"{api.p50 / bare.p50:.2f}"]
                )
    heads = ["kernels", "curl ms", "merged, p50 ms", "p95 ms", "API, p50 ms", "merged ÷ curl", "API ÷ curl"]
    print_table("Live statistics of a batch of kernels", heads, rows)


def _samples(server: PrometheusServer) -> float:
    """Return the number of scrapes within the window."""
    found = server.query(f"max(count_over_time(up[{WINDOW:.0f}s]))")
    return float(found[0]["value"][1]) if found else 0


if __name__ == "__main__":
    main()
