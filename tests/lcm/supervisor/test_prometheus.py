"""The demo's Prometheus."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.utils import timezone

from lcm.demo.credentials import write_prometheus_token
from lcm.management.commands import up
from lcm.services.tokens import find_token
from lcm.supervisor.address import Address
from lcm.supervisor.prometheus import DOWNLOADING, HOW_TO_ADD, NOT_DOWNLOADED, STARTING, Prometheus
from lcm.supervisor.supervisor import Supervisor
from tests.lcm.supervisor.apt import build_package, path_with_apt
from tests.support.control_plane import wait_until
from tests.support.test_chromium import program

WEB = Address("127.0.0.1", 8000)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prometheus:
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs, "prometheus")
    monkeypatch.setenv("PATH", str(programs))
    found = Prometheus.planned(WEB, tmp_path)
    assert found is not None
    return found


def test_without_program_and_apt_prometheus_is_not_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Prometheus.planned(WEB, tmp_path) is None


def test_prometheus_discovers_targets_from_lcm(plan: Prometheus, db: None) -> None:
    plan.prepare()
    config = json.loads((plan.folder / "prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert set(jobs) == {"lcm", "lcm-controllers"}
    (discovery,) = jobs["lcm"]["http_sd_configs"]
    assert discovery["url"] == "http://127.0.0.1:8000/api/internal/prometheus-targets"
    key = Path(discovery["authorization"]["credentials_file"])
    assert key.stat().st_mode & 0o077 == 0
    token = find_token(key=key.read_text(), now=timezone.now())
    assert token is not None
    assert token.scopes == ["prometheus:targets"]
    assert all(Path(rules).exists() for rules in config["rule_files"])


def test_its_token_survives_a_restart(tmp_path: Path, db: None) -> None:
    path = tmp_path / "token"
    write_prometheus_token(path, now=timezone.now())
    key = path.read_text()
    write_prometheus_token(path, now=timezone.now())
    assert path.read_text() == key
    path.write_text("lcm_forgotten")
    write_prometheus_token(path, now=timezone.now())
    assert path.read_text() not in (key, "lcm_forgotten")


def test_prometheus_uses_the_metrics_token(plan: Prometheus, settings: SimpleNamespace, db: None) -> None:
    settings.METRICS_TOKEN = "secret"
    plan.prepare()
    config = json.loads((plan.folder / "prometheus.yml").read_text())
    given = {job["job_name"]: job.get("authorization") for job in config["scrape_configs"]}
    assert given == {"lcm": {"type": "Bearer", "credentials": "secret"}, "lcm-controllers": None}


def test_prometheus_listens_on_the_address_that_lcm_queries(plan: Prometheus) -> None:
    assert plan.program is not None
    child = plan.child(plan.program)
    assert child.argv[0].endswith("/prometheus")
    assert f"--web.listen-address={plan.address}" in child.argv
    assert plan.settings["PROMETHEUS_URL"] == f"http://{plan.address}"


@pytest.mark.parametrize(
    ("demo", "alive", "url", "wanted"),
    [
        (True, True, "", True),
        (True, False, "", False),
        (False, True, "", False),
        (True, True, "http://p", False),
    ],
)
def test_prometheus_runs_only_in_the_live_demo(
    settings: SimpleNamespace, demo: bool, alive: bool, url: str, wanted: bool
) -> None:
    settings.DEMO = demo
    settings.CONFIG |= {"DEMO_LIVE": alive, "PROMETHEUS_URL": url}
    assert up._wants_prometheus() == wanted


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    supervisor = Supervisor(report=print)
    yield supervisor
    supervisor.stop()


def startup_output(supervisor: Supervisor, prometheus: Prometheus | None) -> list[str]:
    """Return the list of printed lines, which grows."""
    command, lines = up.Command(), list[str]()
    command._report = lines.append  # type: ignore[method-assign]
    command._welcome(supervisor, WEB, prometheus)
    return lines


def test_without_prometheus_the_output_explains_how_to_add_it(
    settings: SimpleNamespace, supervisor: Supervisor
) -> None:
    settings.DEMO = True
    settings.CONFIG |= {"DEMO_LIVE": True, "PROMETHEUS_URL": ""}
    assert f"  {HOW_TO_ADD}" in startup_output(supervisor, None)


def plan_without_prometheus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> tuple[Prometheus, Path]:
    """Return a plan on a machine with this apt-get and without Prometheus, and its status file."""
    monkeypatch.setenv("PATH", path_with_apt(tmp_path, script))
    plan = Prometheus.planned(WEB, tmp_path)
    assert plan is not None
    plan.folder.mkdir()
    return plan, Path(plan.settings["PROMETHEUS_STATUS_FILE"])


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="not a Debian or Ubuntu")
def test_prometheus_is_downloaded_in_the_background_and_then_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supervisor: Supervisor
) -> None:
    program = '#!/bin/sh\ntest "$1" = --version || exec sleep 60\n'
    archive = build_package(tmp_path, "prometheus", {"usr/bin/prometheus": program})
    script = f"while ! test -e {tmp_path}/go; do sleep 0.05; done; cp {archive} prometheus_1_all.deb"
    plan, status = plan_without_prometheus(tmp_path, monkeypatch, script)
    lines = startup_output(supervisor, plan)
    assert status.read_text() == DOWNLOADING
    assert "Prometheus is not installed. LCM downloads it" in lines[-1]
    (tmp_path / "go").touch()

    def is_started() -> bool:
        supervisor.supervise(time.monotonic())
        return [child.name for child in supervisor.children] == ["prometheus"]

    wait_until(is_started, "Prometheus is started")
    assert supervisor.children[0].argv[0] == str(plan.programs / "prometheus" / "usr/bin/prometheus")
    assert status.read_text() == STARTING
    assert lines[-1] == f"  Prometheus runs at http://{plan.address}/"


def test_after_a_failed_download_the_output_explains_how_to_add_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supervisor: Supervisor
) -> None:
    plan, status = plan_without_prometheus(tmp_path, monkeypatch, "exit 100")
    lines = startup_output(supervisor, plan)

    def download_has_ended() -> bool:
        supervisor.supervise(time.monotonic())
        return not supervisor.children

    wait_until(download_has_ended, "the download has failed")
    assert status.read_text() == NOT_DOWNLOADED
    assert lines[-1] == f"  {HOW_TO_ADD}"
