"""Run LCM under load and record the memory of its processes: `python -m tests.end_to_end.faults.soak`."""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from tests.end_to_end.faults.bootstrap import USER, Known, bootstrap
from tests.end_to_end.faults.memory import Recorder, Sample, at_minutes, growth_by_hour
from tests.support import postgres_server, valkey_server
from tests.support.control_plane import ROOT, ControlPlane, control_plane, free_address
from tests.support.controller_plane import ControllerProcess
from tests.support.simulator import SimulatorProcess

SAMPLE_SECONDS = 30
LONG_POLLS = 4
PAGES = (
    "/", "/sessions/", "/sessions/?status=RUNNING", "/sessions/new", "/sessions/{session}/", "/definitions/",
    "/definitions/{definition}/", "/pools/", "/queue/", "/queue/dry-run", "/ticks/", "/decisions/", "/slots/",
    "/reservations/", "/fair-share/", "/usage/", "/observers/", "/observers/runs/", "/observations/",
    "/port-drift/", "/people/", "/jobs/", "/controllers/", "/tokens/", "/changes/", "/search?q=faults",
    "/overview/ticks", "/overview/usage", "/queue/ticks", "/observers/board", "/controllers/board",
    "/sessions/{session}/live", "/sessions/{session}/capacity", "/live/busiest", "/metrics",
)  # fmt: skip
API = (
    "lablet-sessions/", "lablet-sessions/?status=RUNNING", "lablet-sessions/{session}", "lablet-definitions/",
    "lablet-definitions/{definition}", "pools/", "slots/", "reservations/", "ticks/", "decisions/",
    "usage-buckets/", "fair-shares/", "users/", "changes/", "jobs/", "schema?format=json",
)  # fmt: skip
EXPORTS = ("/sessions/", "/decisions/", "/changes/", "/definitions/", "/ticks/", "/reservations/")


class BackgroundLoad:
    """Clients that send a limited number of requests per second."""

    def __init__(self, url: str, watch_url: str, known: Known, *, rate: float, seed: int) -> None:
        self.url, self.watch_url, self.known, self.rate = url, watch_url, known, rate
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.sessions: list[str] = []

    async def run(self, seconds: float) -> None:
        limits = httpx.Limits(max_connections=20)
        headers = {"Authorization": f"Bearer {self.known.person}"}
        async with (
            httpx.AsyncClient(base_url=self.url, timeout=60, limits=limits) as self.browser,
            httpx.AsyncClient(base_url=self.url, timeout=60, limits=limits, headers=headers) as self.api,
            httpx.AsyncClient(base_url=self.watch_url, timeout=60) as self.watcher,
        ):
            await self._log_in()
            until = time.monotonic() + seconds
            await asyncio.gather(self._requests(until), *(self._long_poll(until) for _ in range(LONG_POLLS)))

    async def _log_in(self) -> None:
        page = (await self.browser.get("/login")).text
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, page
        form = {"username": USER, "password": self.known.password, "csrfmiddlewaretoken": token[1]}
        response = await self.browser.post("/login", data=form, headers={"Referer": self.url})
        assert response.status_code == 302, f"the sign-in returned {response.status_code}"

    async def _requests(self, until: float) -> None:
        pending: set[asyncio.Task[None]] = set()
        while time.monotonic() < until:
            if len(pending) < 20:
                task = asyncio.create_task(self._one())
                pending.add(task)
                task.add_done_callback(pending.discard)
            await asyncio.sleep(self.random.expovariate(self.rate))
        await asyncio.gather(*pending)

    async def _one(self) -> None:
        kind = self.random.choices(("page", "api", "export", "request", "cancel"), (55, 30, 5, 6, 3))[0]
        try:
            response = await getattr(self, f"_{kind}")()
            self.counts[f"{kind} {response.status_code}"] += 1
        except httpx.HTTPError as error:
            self.counts[f"{kind} {type(error).__name__}"] += 1

    def _fill(self, path: str) -> str:
        session = self.random.choice(self.sessions[-50:]) if self.sessions else "new"
        return path.format(session=session, definition=self.known.definition)

    async def _page(self) -> httpx.Response:
        return await self.browser.get(self._fill(self.random.choice(PAGES)))

    async def _api(self) -> httpx.Response:
        return await self.api.get("/api/" + self._fill(self.random.choice(API)))

    async def _export(self) -> httpx.Response:
        kind = self.random.choice(("csv", "json"))
        return await self.browser.get(f"{self.random.choice(EXPORTS)}?format={kind}")

    async def _request(self) -> httpx.Response:
        ends = datetime.now(UTC) + timedelta(seconds=self.random.uniform(20, 60))
        body = {
            "definition": self.known.definition,
            "project": self.known.project,
            "ends_at": ends.isoformat(),
        }
        response = await self.api.post("/api/lablet-sessions/", json=body)
        if response.status_code == 201:
            self.sessions.append(response.json()["id"])
        return response

    async def _cancel(self) -> httpx.Response:
        path = self._fill("/api/lablet-sessions/{session}/cancel")
        return await self.api.post(path, json={"reason": "soak"})

    async def _long_poll(self, until: float) -> None:
        headers = {"Authorization": f"Bearer {self.known.controller}"}
        revision = ""
        while time.monotonic() < until:
            query = f"?since={revision}&wait=25" if revision else ""
            try:
                response = await self.watcher.get(f"/api/internal/watch{query}", headers=headers)
            except httpx.HTTPError as error:
                self.counts[f"long poll {type(error).__name__}"] += 1
                await asyncio.sleep(1)
                continue
            self.counts[f"long poll {response.status_code}"] += 1
            revision = str(response.json()["revision"]) if response.status_code == 200 else ""


def processes_of(plane: ControlPlane, controller: ControllerProcess) -> dict[int, str]:
    """Return the role of each process by id; gunicorn and celery leaders are listed as such."""
    found = {}
    web, worker = plane.leader("lcm.wsgi"), plane.leader("lcm.celery worker")
    for pid in plane.processes():
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        if "lcm.wsgi" in command:
            found[pid] = "web leader" if pid == web else "web"
        elif "lcm.asgi" in command:
            found[pid] = "watch leader" if pid == plane.leader("lcm.asgi") else "watch"
        elif "lcm.celery worker" in command:
            found[pid] = "worker leader" if pid == worker else "worker"
        elif "lcm.celery beat" in command:
            found[pid] = "beat"
    if controller.process is not None:
        found[controller.process.pid] = "controller"
    return found


async def soak(
    plane: ControlPlane,
    controller: ControllerProcess,
    load: BackgroundLoad,
    recorder: Recorder,
    minutes: float,
) -> None:
    async def record() -> None:
        while True:
            recorder.record(processes_of(plane, controller))
            await asyncio.sleep(SAMPLE_SECONDS)

    recording = asyncio.create_task(record())
    await load.run(minutes * 60)
    recording.cancel()
    recorder.record(processes_of(plane, controller))


def print_result(samples: list[Sample], load: BackgroundLoad, minutes: float) -> None:
    marks = [minutes * step / 6 for step in range(7)]
    print("\nPrivate memory in MB at minute " + ", ".join(f"{mark:g}" for mark in marks))
    for row in at_minutes(samples, marks):
        print("| " + " | ".join(row) + " |")
    web = [sample for sample in samples if sample.role == "web"]
    for pid in sorted({sample.pid for sample in web}):
        slope = growth_by_hour([sample for sample in web if sample.pid == pid], after=minutes * 30)
        print(f"web {pid}: {slope:+.1f} MB an hour in the second half")
    print("Responses: " + ", ".join(f"{name}: {count}" for name, count in sorted(load.counts.items())))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=8, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=ROOT / "var" / "soak.csv")
    options = parser.parse_args(arguments)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lcm-soak-")))
        servers = {
            "DATABASE_URL": stack.enter_context(postgres_server(durable=True)),
            "REDIS_URL": stack.enter_context(valkey_server()),
        }
        simulator = stack.enter_context(SimulatorProcess())
        settings = {"SIMULATOR_URL": simulator.url, "API_RATE": "100000/min", "LOG_LEVEL": "WARNING"}
        plane = stack.enter_context(
            control_plane(folder / "data", free_address(), from_nothing=True, **servers, **settings)
        )
        plane.data_dir.mkdir()
        for command in (["migrate", "--verbosity=0"], ["load_demo"]):
            env = {**plane._environment(), "DEMO_LIVE": "false", "DEBUG": "true"}
            subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=env, check=True)
        known = bootstrap(plane._environment())
        plane.start_and_wait()
        url = f"http://{plane.address}"
        controller = ControllerProcess(folder / "controller", url, known.controller, {"NAME": "soak"}).start()
        stack.callback(controller.kill)
        load = BackgroundLoad(
            url, f"http://{plane.watch_address}", known, rate=options.rate, seed=options.seed
        )
        recorder = Recorder(options.output)
        print(
            f"Soak of {options.minutes:g} min, seed {options.seed}; samples in {options.output}",
            flush=True,
        )
        asyncio.run(soak(plane, controller, load, recorder, options.minutes))
        print_result(recorder.samples, load, options.minutes)
        (options.output.with_suffix(".log")).write_text(plane.output)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("Stopped; all processes of the soak have ended")
        sys.exit(130)
