"""LCM with two instances of each process, on one PostgreSQL, one Valkey and one CML simulator."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psycopg

from lcm.cml.simulator.admin_client import SimulatorAdmin
from lcm.supervisor import processes
from tests.end_to_end.faults.bootstrap import Known, bootstrap
from tests.end_to_end.faults.clock import ClockFile
from tests.end_to_end.faults.processes import ManagedProcess
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.faults.servers import Broker, Database
from tests.support.control_plane import ROOT, free_address
from tests.support.environment import clean_environment

START_SECONDS = 180.0
# Intervals of handlers, observers and ticks; other settings are as in production.
INTERVALS = {
    "TICK_INTERVAL": 5.0,
    "RECONCILE_INTERVAL": 5.0,
    "LIFECYCLE_INTERVAL": 5.0,
    "USAGE_RECORD_INTERVAL": 5.0,
    "USAGE_AGGREGATION_INTERVAL": 8.0,
    "FAIR_SHARE_INTERVAL": 10.0,
    "SERVICE_DISCOVERY_INTERVAL": 5.0,
}
HANDLERS = (
    "expire-pending", "requeue-scheduled", "requeue-instantiating", "no-show-ready", "end-running",
    "finish-stopping",
)  # fmt: skip
RUN_INTERVALS = {
    "tick": INTERVALS["TICK_INTERVAL"],
    **dict.fromkeys(HANDLERS, INTERVALS["LIFECYCLE_INTERVAL"]),
    "usage-record": INTERVALS["USAGE_RECORD_INTERVAL"],
    "usage-aggregation": INTERVALS["USAGE_AGGREGATION_INTERVAL"],
    "fair-share-calculation": INTERVALS["FAIR_SHARE_INTERVAL"],
    "service-discovery": INTERVALS["SERVICE_DISCOVERY_INTERVAL"],
}
CONTROLLER = {
    "HEARTBEAT_SECONDS": "2",
    "SURVEY_SECONDS": "5",
    "STATS_SECONDS": "5",
    "BOOT_POLL_SECONDS": "0.5",
    "RUNNING_CHECK_SECONDS": "5",
    "IMPORT_SETTLE_SECONDS": "3",
    "ORPHAN_GRACE_SECONDS": "20",
    "WORKER_PASSWORD": "simulated",
}
DISK = "size=1m"


class FaultStage:
    """All processes and servers that faults can hit."""

    def __init__(self, folder: Path, logs: Path, rng: random.Random, *, small_disks: bool) -> None:
        self.folder, self.logs, self.rng, self.small_disks = folder, logs, rng, small_disks
        self.database = Database(folder / "postgres")
        self.broker = Broker(folder / "valkey")
        self.ports = [free_address().port for _ in range(2)]
        self.processes: dict[str, ManagedProcess] = {}
        self.proxies: list[Proxy] = []
        self.clocks: list[ClockFile] = []
        self.disks: list[Path] = []

    def web_ports(self) -> list[int]:
        return list(self.ports)

    async def start(self) -> None:
        """Start everything and wait until sessions can be placed."""
        self.database.folder.mkdir()
        self.database.begin()
        self.broker.begin()
        simulator = free_address().port
        self.env = clean_environment(
            DATA_DIR=str(self.folder),
            DATABASE_URL=self.database.url,
            REDIS_URL=self.broker.url,
            SIMULATOR_URL=f"http://127.0.0.1:{simulator}",
            WEB_WORKERS="1",
            WORKER_CONCURRENCY="2",
            API_RATE="100000/min",
            CONTROLLER_RATE="100000/min",
            LOG_LEVEL="WARNING",
            # Sessions that no controller moves on must not outlast the run.
            SCHEDULED_TIMEOUT="120",
            INSTANTIATING_TIMEOUT="180",
            END_GRACE="120",
            **{name: f"{seconds:g}" for name, seconds in INTERVALS.items()},
        )
        self._add(
            "simulator",
            processes.simulator(self.env, simulator, self.folder / "simulator.json").argv,
            self.env,
        )
        self.simulator = SimulatorAdmin(f"http://127.0.0.1:{simulator}")
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity=0"], cwd=ROOT, env=self.env, check=True
        )
        self.known = bootstrap(self.env)
        for number, port in enumerate(self.ports, start=1):
            self._add_control_plane(number, port)
            await self._add_controller(number, self.known)
        await self.ready()

    def _add_control_plane(self, number: int, port: int) -> None:
        metrics = self.folder / f"metrics-{number}"
        metrics.mkdir()
        binds = {"WEB_BIND": f"127.0.0.1:{port}", "WATCH_BIND": str(free_address())}
        env = {**self.env, **binds, "PROMETHEUS_MULTIPROC_DIR": str(metrics)}
        schedule = self.folder / f"beat-{number}"
        schedule.mkdir()
        self._add(f"web-{number}", processes.web(env).argv, env)
        self._add(f"watch-{number}", processes.watch(env).argv, env)
        self._add(f"worker-{number}", [*processes.worker(env).argv, "-n", f"worker-{number}@%h"], env)
        self._add(f"beat-{number}", processes.beat(env, schedule).argv, env)

    async def _add_controller(self, number: int, known: Known) -> None:
        name = f"controller-{number}"
        folder = self.folder / name
        folder.mkdir()
        if self.small_disks:
            subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "lcm-faults", str(folder)], check=True)
        proxy = Proxy(self.web_ports, self.rng)
        await proxy.start()
        clock = self.folder / f"{name}.clock"
        given = {
            **CONTROLLER,
            "NAME": name,
            "LCM_URL": f"http://127.0.0.1:{proxy.port}",
            "TOKEN": known.controller,
            "DATA_DIR": str(folder),
            "METRICS_BIND": f"127.0.0.1:{free_address().port}",
            "LOG_LEVEL": "INFO",
        }
        env = {**os.environ, **{f"LCM_CONTROLLER_{key}": value for key, value in given.items()}}
        self.proxies.append(proxy)
        self.clocks.append(ClockFile(clock))
        self.disks.append(folder)
        self._add(name, [sys.executable, "-m", "tests.end_to_end.faults.skewed_controller", str(clock)], env)

    def _add(self, name: str, argv: object, env: dict[str, str]) -> None:
        process = ManagedProcess(name, list(argv), env, self.logs / f"{name}.log")  # type: ignore[call-overload]
        self.processes[name] = process
        process.start()

    async def ready(self) -> None:
        """Wait until both web servers are ready and a slot is in service."""
        deadline = time.monotonic() + START_SECONDS
        while not await asyncio.to_thread(self._is_ready):
            if time.monotonic() > deadline:
                raise RuntimeError(f"LCM was not ready within {START_SECONDS:.0f} s: see {self.logs}")
            await asyncio.sleep(0.5)

    def _is_ready(self) -> bool:
        try:
            responses = [httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5) for port in self.ports]
            with self.database.connect() as connection:
                slots = connection.execute(
                    "SELECT count(*) FROM scheduling_slot WHERE state = 'READY'"
                ).fetchone()
        except (httpx.HTTPError, psycopg.OperationalError):
            return False
        return all(response.status_code == 200 for response in responses) and bool(slots and slots[0])

    async def close(self) -> None:
        for proxy in self.proxies:
            await proxy.close()
        for process in self.processes.values():
            process.stop()
        self.broker.stop()
        self.database.stop()
        if self.small_disks:
            for disk in self.disks:
                subprocess.run(["umount", "--lazy", str(disk)], check=False)
