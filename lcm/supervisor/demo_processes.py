"""Processes of the live demo: simulated workers, their controller, and simulated user activity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lcm.supervisor import processes
from lcm.supervisor.address import Address
from lcm.supervisor.child_process import ChildProcess

METRICS_PORT = 9108


@dataclass(frozen=True)
class DemoFleet:
    """Processes that run only if DEMO is set."""

    web: Address
    simulator: Address
    metrics: Address
    folder: Path

    @classmethod
    def planned(cls, web: Address, data_dir: Path) -> Self:
        return cls(web, Address.any_local(), Address.any_local(METRICS_PORT), data_dir / "controller")

    @property
    def simulator_url(self) -> str:
        return f"http://{self.simulator}"

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of all processes. Demo labs run for minutes, so short runs count."""
        return {"SAMPLE_MIN_UPTIME_SECONDS": "120", **env, "SIMULATOR_URL": self.simulator_url}

    @property
    def _key(self) -> Path:
        return self.folder / "token"

    def prepare(self) -> None:
        """Write the simulator URL and the controller token before the processes start."""
        from django.utils import timezone

        from lcm.demo.credentials import set_simulator_url, write_controller_token

        self.folder.mkdir(exist_ok=True, mode=0o700)
        set_simulator_url(self.simulator_url)
        write_controller_token(self._key, now=timezone.now())

    def children(self, env: Mapping[str, str]) -> list[ChildProcess]:
        settings = {
            "lcm_url": self.web.url,
            "token_file": str(self._key),
            "data_dir": str(self.folder),
            "metrics_bind": str(self.metrics),
            "worker_password": "simulated",
            "survey_seconds": "30",
            "stats_seconds": "3",
            "log_level": "WARNING",
        }
        return [
            processes.simulator(env, self.simulator.port, self.folder / "simulator.json"),
            processes.controller(env, settings),
            processes.demo(env),
        ]
