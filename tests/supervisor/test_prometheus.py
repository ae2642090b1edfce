"""The Prometheus beside the demo."""

import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.utils import timezone

from lcm.demo.workers import prometheus_key
from lcm.management.commands import up
from lcm.services.tokens import find_token
from lcm.supervisor.address import Address
from lcm.supervisor.prometheus import HOW_TO_ADD, Prometheus
from tests.bench.test_chromium import program

WEB = Address("127.0.0.1", 8000)


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prometheus:
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs, "prometheus")
    monkeypatch.setenv("PATH", str(programs))
    found = Prometheus.planned(WEB, tmp_path)
    assert found is not None
    return found


def test_without_the_program_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Prometheus.planned(WEB, tmp_path) is None


def test_it_asks_lcm_what_to_scrape(planned: Prometheus, db: None) -> None:
    planned.prepare()
    config = json.loads((planned.folder / "prometheus.yml").read_text())
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


def test_its_key_is_kept_over_a_restart(tmp_path: Path, db: None) -> None:
    path = tmp_path / "token"
    prometheus_key(path, now=timezone.now())
    key = path.read_text()
    prometheus_key(path, now=timezone.now())
    assert path.read_text() == key
    path.write_text("lcm_forgotten")
    prometheus_key(path, now=timezone.now())
    assert path.read_text() not in (key, "lcm_forgotten")


def test_it_gets_the_token_of_the_metrics(planned: Prometheus, settings: SimpleNamespace, db: None) -> None:
    settings.METRICS_TOKEN = "secret"
    planned.prepare()
    config = json.loads((planned.folder / "prometheus.yml").read_text())
    given = {job["job_name"]: job.get("authorization") for job in config["scrape_configs"]}
    assert given == {"lcm": {"type": "Bearer", "credentials": "secret"}, "lcm-controllers": None}


def test_it_listens_where_lcm_asks(planned: Prometheus) -> None:
    child = planned.child()
    assert child.argv[0].endswith("/prometheus")
    assert f"--web.listen-address={planned.address}" in child.argv
    assert planned.settings["PROMETHEUS_URL"] == f"http://{planned.address}"


@pytest.mark.parametrize(
    ("demo", "alive", "url", "wanted"),
    [
        (True, True, "", True),
        (True, False, "", False),
        (False, True, "", False),
        (True, True, "http://p", False),
    ],
)
def test_it_is_for_the_living_demo_alone(
    settings: SimpleNamespace, demo: bool, alive: bool, url: str, wanted: bool
) -> None:
    settings.DEMO = demo
    settings.CONFIG |= {"DEMO_LIVE": alive, "PROMETHEUS_URL": url}
    assert up._wants_prometheus() == wanted


def test_without_it_people_are_told_how_to_add_one(settings: SimpleNamespace) -> None:
    settings.DEMO = True
    settings.CONFIG |= {"DEMO_LIVE": True, "PROMETHEUS_URL": ""}
    command = up.Command()
    command._say = Mock()  # type: ignore[method-assign]
    command._announce(WEB, None)
    assert f"  {HOW_TO_ADD}" in [call.args[0] for call in command._say.call_args_list]
