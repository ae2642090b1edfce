"""Control plane, simulators and controllers as separate processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from lcm.supervisor.child_process import die_with_parent
from tests.support.control_plane import ROOT, ControlPlane, free_address, wait_until
from tests.support.controller_bootstrap import BOOTSTRAP
from tests.support.simulator import SimulatorProcess

FINAL = ("TERMINATED", "CANCELLED", "EXPIRED", "FAILED")
QUICK = {
    "HEARTBEAT_SECONDS": "1",
    "SURVEY_SECONDS": "1",
    "STATS_SECONDS": "1",
    "BOOT_POLL_SECONDS": "0.2",
    "RUNNING_CHECK_SECONDS": "1",
    "ORPHAN_GRACE_SECONDS": "1",
    "LOG_LEVEL": "INFO",
    "WORKER_PASSWORD": "simulated",
}

PROGRAM = """
import sys, time
real, ahead = time.time, float(sys.argv[1])
if ahead:
    time.time = lambda: real() + ahead
from lcm.controller.__main__ import main
sys.exit(main([]))
"""


@dataclass
class ControllerProcess:
    """A controller process that can be killed and restarted on the same folder."""

    folder: Path
    url: str
    key: str
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    # Seconds by which the controller's clock is ahead.
    clock_ahead: float = 0

    def start(self) -> ControllerProcess:
        self.folder.mkdir(exist_ok=True)
        self.metrics_port = free_address().port
        given = {
            "LCM_URL": self.url,
            "TOKEN": self.key,
            "DATA_DIR": str(self.folder),
            "METRICS_BIND": f"127.0.0.1:{self.metrics_port}",
            **QUICK,
            **self.settings,
        }
        env = {**os.environ, **{f"LCM_CONTROLLER_{name}": value for name, value in given.items()}}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(self.clock_ahead)],
                cwd=ROOT,
                env=env,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        return self

    def kill(self) -> None:
        """Kill the process without a chance to clean up."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def metrics(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=30).text

    def spooled(self) -> int:
        return len(list((self.folder / "spool").glob("*.json")))


class Plane:
    """LCM with its simulators, and calls to its API as an administrator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.simulator = SimulatorProcess().start()
        # A test may start a Prometheus here.
        self.prometheus_address = free_address()
        settings = {
            "PROMETHEUS_URL": f"http://{self.prometheus_address}",
            "PROMETHEUS_SCRAPE_INTERVAL": "1",
            "LIVE_STATS_WINDOW": "6",
            "LIVE_STATS_STEP": "1",
            "LIVE_STATS_CACHE_SECONDS": "0.2",
            "SERVICE_DISCOVERY_INTERVAL": "1",
            "SIMULATOR_URL": self.simulator.url,
            # Labs of these tests run for seconds.
            "SAMPLE_MIN_UPTIME_SECONDS": "2",
            "TICK_INTERVAL": "2",
            "RECONCILE_INTERVAL": "1.5",
            "WEB_WORKERS": "1",
            "WORKER_CONCURRENCY": "2",
            "API_RATE": "100000/min",
            "DEBUG": "true",
            "LOG_LEVEL": "WARNING",
        }
        self.lcm = ControlPlane(folder / "data", free_address(), settings)
        self.lcm.start_and_wait()
        self.url = f"http://{self.lcm.address}"
        self.watch_url = f"http://{self.lcm.watch_address}"
        self.known = self._bootstrap()
        headers = {"Authorization": f"Bearer {self.known['person']}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=30)
        self._controllers: list[ControllerProcess] = []

    def close(self) -> None:
        self.end_controllers()
        self.lcm.clean_up()
        self.simulator.stop()

    def end_controllers(self) -> None:
        """Stop the controllers that a test left running."""
        for controller in self._controllers:
            if controller.is_running:
                controller.kill()

    def controller(
        self, name: str, pool: str = "cml-eu", *, clock_ahead: float = 0, **settings: str
    ) -> ControllerProcess:
        key, named = self.known["controllers"][pool], {"NAME": f"controller-{pool}", **settings}
        controller_process = ControllerProcess(
            self.folder / name, self.url, key, named, clock_ahead=clock_ahead
        )
        self._controllers.append(controller_process)
        return controller_process.start()

    def restart_lcm(self) -> None:
        self.lcm.send(signal.SIGTERM)
        self.lcm.wait()
        self.lcm.start_and_wait()

    def call(self, method: str, path: str, body: Any = None, key: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"} if key else None
        return self.http.request(method, f"/api/{path}", json=body, headers=headers)

    def request_session(self, seconds: float = 600, **fields: Any) -> str:
        """Request a session whose timeslot ends this many seconds from now."""
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        body = {
            "definition": self.known["definition"],
            "project": self.known["project"],
            "ends_at": ends.isoformat(),
            **fields,
        }
        response = self.call("POST", "lablet-sessions/", body)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def run(self, seconds: float, *, left: float = 0, **fields: Any) -> str:
        """Return a running session with at least `left` seconds until the end of its timeslot.

        On a slow machine, retry with a timeslot of twice the length.
        """
        while True:
            session_id = self.request_session(seconds, **fields)
            self.until(session_id, "RUNNING", "COLLECTING", "STOPPING", *FINAL)
            found = self.session(session_id)
            now_left = datetime.fromisoformat(found["ends_at"]) - datetime.now(UTC)
            if found["status"] == "RUNNING" and now_left.total_seconds() > left:
                return session_id
            self.until(session_id, *FINAL)
            seconds *= 2
            assert seconds < 300, self.logs()

    def session(self, session_id: str) -> dict[str, Any]:
        response = self.call("GET", f"lablet-sessions/{session_id}")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def status(self, session_id: str) -> str:
        return str(self.session(session_id)["status"])

    def steps(self, session_id: str) -> list[str]:
        return [step["to_status"] for step in self.session(session_id)["transitions"]]

    def until(self, session_id: str, *statuses: str, seconds: float = 150) -> str:
        wait_until(
            lambda: self.status(session_id) in statuses,
            f"the session is {' or '.join(statuses)}",
            seconds,
            lambda: f"{json.dumps(self.session(session_id)['transitions'], indent=1)}\n{self.logs()}",
        )
        return self.status(session_id)

    def logs(self) -> str:
        return "\n".join(controller.log[-4000:] for controller in self._controllers[-2:])

    def workers(self, pool: str = "cml-eu") -> dict[str, dict[str, Any]]:
        """Return the simulated workers of a pool's slots by name."""
        response = self.call("GET", f"slots/?pool={pool}&page_size=50").json()["results"]
        instances = {slot["instance_id"] for slot in response if slot["instance_id"]}
        everything = self.simulator.admin.controllers()
        return {name: each for name, each in everything.items() if name in instances}

    def worker(self, pool: str = "cml-eu") -> str:
        """Wait for the pool's first worker and return its name."""
        wait_until(lambda: self.workers(pool), f"{pool} has a worker", 60, self.logs)
        return next(iter(self.workers(pool)))

    def serving(self, pool: str = "cml-eu") -> None:
        """Wait until a worker of the pool accepts sessions."""
        ready = f"slots/?pool={pool}&state=READY"
        wait_until(lambda: self.call("GET", ready).json()["results"], f"{pool} serves", 90, self.logs)

    def labs(self, session_id: str = "") -> list[str]:
        """Return the titles of LCM's labs on all workers, of one session or of all."""
        everything = self.simulator.admin.controllers().values()
        titles = [lab["title"] for each in everything for lab in each["labs"].values()]
        return [title for title in titles if title.startswith(f"lcm:{session_id}")]

    def ports_of(self, *session_ids: str) -> list[int]:
        """Return the ports allocated to these sessions on any slot."""
        slots = self.call("GET", "slots/?page_size=100").json()["results"]
        details = [
            self.call("GET", f"slots/{slot['id']}").json() for slot in slots if slot["state"] != "TERMINATED"
        ]
        return [port["port"] for slot in details for port in slot["ports"] if port["session"] in session_ids]

    def _bootstrap(self) -> dict[str, Any]:
        result = subprocess.run(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", BOOTSTRAP],
            cwd=ROOT,
            env=self.lcm._environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        line = next((line for line in result.stdout.splitlines() if line.startswith("READ ")), None)
        assert line, result.stdout + result.stderr
        found: dict[str, Any] = json.loads(line.removeprefix("READ "))
        return found
