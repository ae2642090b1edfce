"""A Prometheus beside the demo: the machine's own program, told by LCM what to scrape."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from django.conf import settings

from lcm.supervisor.address import Address
from lcm.supervisor.children import Child

PORT = 9090
SCRAPE_SECONDS = 5
RULES = "deploy/prometheus/lcm.rules.yml"
HOW_TO_ADD = (
    "There is no Prometheus in the PATH, so pages show no live statistics. "
    "On Debian and Ubuntu: apt install prometheus, then start LCM again."
)


@dataclass(frozen=True)
class Prometheus:
    """Only ever started with DEMO, and never beside one that PROMETHEUS_URL names."""

    program: str
    web: Address
    address: Address
    folder: Path

    @classmethod
    def planned(cls, web: Address, data_dir: Path) -> Self | None:
        """None when there is no such program."""
        program = shutil.which("prometheus")
        if program is None:
            return None
        return cls(program, web, Address.any_local(PORT), data_dir / "prometheus")

    @property
    def settings(self) -> dict[str, str]:
        """What LCM has to know of it, as environment variables."""
        return {
            "PROMETHEUS_URL": f"http://{self.address}",
            "PROMETHEUS_SCRAPE_INTERVAL": str(SCRAPE_SECONDS),
            "LIVE_STATS_STEP": str(SCRAPE_SECONDS),
            "SERVICE_DISCOVERY_INTERVAL": str(SCRAPE_SECONDS),
        }

    @property
    def _key(self) -> Path:
        return self.folder / "token"

    def prepare(self) -> None:
        """Its configuration, and a key to the list of targets."""
        from django.utils import timezone

        from lcm.demo.workers import prometheus_key

        self.folder.mkdir(exist_ok=True, mode=0o700)
        prometheus_key(self._key, now=timezone.now())
        # JSON is YAML, too.
        (self.folder / "prometheus.yml").write_text(json.dumps(self._configuration(), indent=2))

    def child(self) -> Child:
        options = {
            "config.file": self.folder / "prometheus.yml",
            "storage.tsdb.path": self.folder / "data",
            "storage.tsdb.retention.time": "3d",
            "web.listen-address": self.address,
            "log.level": "error",
        }
        argv = [self.program, *(f"--{name}={value}" for name, value in options.items())]
        return Child("prometheus", argv, os.environ)

    def _configuration(self) -> dict[str, object]:
        discovery: dict[str, object] = {
            "url": f"{self.web.url}api/internal/prometheus-targets",
            "refresh_interval": f"{SCRAPE_SECONDS}s",
            # Debian's Prometheus does not add the type by itself here.
            "authorization": {"type": "Bearer", "credentials_file": str(self._key)},
        }
        jobs = [
            self._job("lcm-controllers", "controller", discovery),
            self._job("lcm", "web|worker", discovery),
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
