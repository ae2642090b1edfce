"""Prometheus for tests: the installed program, or the package that `make run` downloads."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from lcm.supervisor.address import Address
from lcm.supervisor.child_process import die_with_parent
from lcm.supervisor.debian_packages import PROMETHEUS, DownloadError
from tests.support.control_plane import ROOT, free_address, wait_until
from tests.support.errors import Missing

PROGRAMS = ROOT / "var" / "programs"


def prometheus() -> str:
    """Return the folder of `prometheus` and `promtool`; raise Missing if they cannot be downloaded."""
    found = [shutil.which(name) for name in ("prometheus", "promtool")]
    if found[0] and found[1]:
        return str(Path(found[0]).parent)
    try:
        return str(PROMETHEUS.download(PROGRAMS, report=print).parent)
    except DownloadError as error:
        raise Missing(
            f"Prometheus: install prometheus and promtool so that both are in the PATH ({error})"
        ) from error


@dataclass
class PrometheusServer:
    """A server with its own port and folder that can be restarted."""

    folder: Path
    jobs: list[dict[str, Any]]
    scrape_seconds: float = 1.0
    address: Address = field(default_factory=free_address)
    process: subprocess.Popen[bytes] | None = None
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=10))

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def start(self) -> None:
        interval = f"{round(self.scrape_seconds * 1000)}ms"
        config = {"global": {"scrape_interval": interval}, "scrape_configs": self.jobs}
        # JSON is valid YAML.
        (self.folder / "prometheus.yml").write_text(json.dumps(config))
        options = {
            "config.file": self.folder / "prometheus.yml",
            "storage.tsdb.path": self.folder / "data",
            "web.listen-address": self.address,
            "log.level": "error",
        }
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [f"{prometheus()}/prometheus", *(f"--{name}={value}" for name, value in options.items())],
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        wait_until(self._is_ready, "Prometheus is ready", 30, lambda: (self.folder / "log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def query(self, promql: str) -> list[dict[str, Any]]:
        response = self.http.post(f"{self.url}/api/v1/query", data={"query": promql})
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()["data"]["result"]
        return found

    def targets(self) -> list[dict[str, Any]]:
        """Return the active targets."""
        response = self.http.get(f"{self.url}/api/v1/targets?state=active").json()
        found: list[dict[str, Any]] = response["data"]["activeTargets"]
        return found

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            return self.http.get(f"{self.url}/-/ready").status_code == 200
        except httpx.HTTPError:
            return False


@contextmanager
def prometheus_server(
    jobs: list[dict[str, Any]], *, scrape_seconds: float = 1.0
) -> Iterator[PrometheusServer]:
    """Run a server for the duration of the block."""
    with tempfile.TemporaryDirectory(prefix="lcm-prometheus-", ignore_cleanup_errors=True) as name:
        server = PrometheusServer(Path(name), jobs, scrape_seconds)
        try:
            server.start()
            yield server
        finally:
            server.stop()
