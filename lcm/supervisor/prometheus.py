"""Prometheus for the demo, configured by LCM: the installed program or a downloaded package."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from django.conf import settings

from lcm.supervisor.address import Address
from lcm.supervisor.child_process import ChildProcess
from lcm.supervisor.debian_packages import PROMETHEUS, can_download

PORT = 9090
SCRAPE_SECONDS = 5
RULES = "deploy/prometheus/lcm.rules.yml"
HOW_TO_ADD = (
    "Without Prometheus, pages show no live statistics. Install Prometheus so that it is in the PATH "
    "(Debian and Ubuntu: apt install prometheus) and start LCM again."
)
DOWNLOADING = "LCM is downloading Prometheus; live statistics start when the download is complete"
STARTING = "Prometheus is starting; live statistics appear in a few seconds"
NOT_DOWNLOADED = f"Prometheus could not be downloaded; see the output of LCM. {HOW_TO_ADD}"


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that runs only if DEMO is set and PROMETHEUS_URL is not."""

    web: Address
    address: Address
    folder: Path
    programs: Path

    @classmethod
    def planned(cls, web: Address, data_dir: Path) -> Self | None:
        """Return None if there is no program and none can be downloaded."""
        planned = cls(web, Address.any_local(PORT), data_dir / "prometheus", data_dir / "programs")
        return planned if planned.program or can_download() else None

    @property
    def program(self) -> str | None:
        """The installed program, or else the downloaded one."""
        return shutil.which("prometheus") or _text(PROMETHEUS.find(self.programs))

    @property
    def settings(self) -> dict[str, str]:
        """Settings of LCM for this Prometheus, as environment variables."""
        return {
            "PROMETHEUS_URL": f"http://{self.address}",
            "PROMETHEUS_STATUS_FILE": str(self._status),
            "PROMETHEUS_SCRAPE_INTERVAL": str(SCRAPE_SECONDS),
            "LIVE_STATS_STEP": str(SCRAPE_SECONDS),
            "SERVICE_DISCOVERY_INTERVAL": str(SCRAPE_SECONDS),
        }

    @property
    def _key(self) -> Path:
        return self.folder / "token"

    @property
    def _status(self) -> Path:
        return self.folder / "status"

    def set_status(self, text: str) -> None:
        """Set the text that pages and the API show while Prometheus does not respond."""
        with suppress(OSError):
            self._status.write_text(text)

    def prepare(self) -> None:
        """Write the configuration, and a token for the list of targets."""
        from django.utils import timezone

        from lcm.demo.credentials import write_prometheus_token

        self.folder.mkdir(exist_ok=True, mode=0o700)
        write_prometheus_token(self._key, now=timezone.now())
        # JSON is valid YAML.
        (self.folder / "prometheus.yml").write_text(json.dumps(self._configuration(), indent=2))

    def download(self, on_end: Callable[[int], None]) -> ChildProcess:
        """Return the process that downloads the program. `on_end` is called with its exit code."""
        argv = [sys.executable, "-m", "lcm.supervisor.debian_packages", str(self.programs)]
        return ChildProcess("download of Prometheus", argv, os.environ, on_end=on_end)

    def child(self, program: str) -> ChildProcess:
        options = {
            "config.file": self.folder / "prometheus.yml",
            "storage.tsdb.path": self.folder / "data",
            "storage.tsdb.retention.time": "3d",
            "web.listen-address": self.address,
            "log.level": "error",
        }
        argv = [program, *(f"--{name}={value}" for name, value in options.items())]
        return ChildProcess("prometheus", argv, os.environ)

    def _configuration(self) -> dict[str, object]:
        discovery: dict[str, object] = {
            "url": f"{self.web.url}api/internal/prometheus-targets",
            "refresh_interval": f"{SCRAPE_SECONDS}s",
            # Debian's Prometheus does not add the type here.
            "authorization": {"type": "Bearer", "credentials_file": str(self._key)},
        }
        jobs = [
            self._job("lcm-controllers", "controller", discovery),
            self._job("lcm", "web|watch|worker", discovery),
        ]
        if settings.METRICS_TOKEN:
            jobs[1]["authorization"] = {"type": "Bearer", "credentials": settings.METRICS_TOKEN}
        return {
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"},
            "rule_files": [str(settings.BASE_DIR / RULES)],
            "scrape_configs": jobs,
        }

    def _job(self, name: str, kinds: str, discovery: dict[str, object]) -> dict[str, object]:
        keep = {"source_labels": ["__meta_lcm_kind"], "regex": kinds, "action": "keep"}
        return {"job_name": name, "http_sd_configs": [discovery], "relabel_configs": [keep]}


def _text(path: Path | None) -> str | None:
    return str(path) if path else None
