"""Observers of other packages: registered, scheduled and run; a broken observer is reported and skipped."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from lcm.config.environment import read_settings
from lcm.domain.lifecycle import SessionStatus
from lcm.periodic import beat_schedule
from scheduling.coordination.coordinator import ENTRY_POINTS, coordinator
from scheduling.coordination.handlers import BUILT_IN
from scheduling.coordination.observer import interval_of
from scheduling.selectors.observers import observer_statuses
from tests.support.packages import install_package

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "observers.md").read_text()
CODE = dict(re.findall(r"```\w+\n# file: ([\w.]+)\n(.*?)```", GUIDE, re.DOTALL))
OBSERVERS = '''
from datetime import timedelta

from scheduling.coordination.observer import ObserverHandler, ObserverResult


class Quick(ObserverHandler):
    """Counts letters."""

    interval = timedelta(seconds=20)

    @classmethod
    def name(cls):
        return "quick"

    def fetch_targets(self):
        return ["a", "b"]

    def execute(self, targets):
        return ObserverResult(success_count=len(targets))

    def lag(self, now):
        raise RuntimeError("no idea")


class Slow(Quick):
    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name


class Never(Quick):
    interval = timedelta(0)

    @classmethod
    def name(cls):
        return "never"


class Vague(Quick):
    @classmethod
    def name(cls):
        return "vague"

    @property
    def interval(self):
        raise RuntimeError("no interval")


class Half(ObserverHandler):
    pass


def slow():
    return Slow("slow")


def tick():
    return Slow("tick")


def usage_record():
    return Slow("usage-record")


def spaced():
    return Slow("has spaces")


def nothing():
    return None


ready_made = Slow("ready-made")
'''
POINTS = {
    **{
        name: f"own_observers.good:{value}"
        for name, value in {
            "quick": "Quick", "slow": "slow", "ready": "ready_made", "tick": "tick", "never": "Never",
            "vague": "Vague", "half": "Half", "taken": "usage_record", "spaced": "spaced",
            "nothing": "nothing", "missing": "Missing",
        }.items()
    },
    "no-observer": "own_observers.other:NUMBER",
    "no-module": "own_observers.gone:Observer",
    "raising": "own_observers.raising:Observer",
    "leaving": "own_observers.leaving:Observer",
}  # fmt: skip
LEFT_OUT = sorted(POINTS.keys() - {"quick", "slow", "ready", "tick"})


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with two packages: one with valid and broken observers, and the one of the guide."""
    folder = tmp_path_factory.mktemp("site")
    guide = tomllib.loads(CODE["pyproject.toml"])["project"]["entry-points"]
    install_package(folder, "licence_observer", {"licences.py": CODE["licences.py"]}, guide)
    modules = {
        "good.py": OBSERVERS,
        "other.py": "NUMBER = 3\n",
        "raising.py": "raise RuntimeError('broken')\n",
        "leaving.py": "import sys\nsys.exit(3)\n",
    }
    return install_package(folder, "own_observers", modules, {ENTRY_POINTS: POINTS})


@pytest.fixture
def loaded_coordinator(package, empty_coordinator, monkeypatch):
    """A separate coordinator with LCM's names, after it loaded the package."""
    monkeypatch.syspath_prepend(str(package))
    for handler in BUILT_IN:
        empty_coordinator.register_handler(handler())
    empty_coordinator.register_observer(coordinator.observers["usage-record"])
    empty_coordinator.load_observers()
    yield empty_coordinator
    for name in [name for name in sys.modules if name.startswith(("own_observers", "licence_observer"))]:
        del sys.modules[name]


def test_broken_observers_are_reported_and_left_out(loaded_coordinator, caplog):
    assert set(loaded_coordinator.observers) == {
        "licences",
        "quick",
        "slow",
        "ready-made",
        "tick",
        "usage-record",
    }
    assert sorted(loaded_coordinator.rejected) == LEFT_OUT
    assert loaded_coordinator.observers["usage-record"] is coordinator.observers["usage-record"]
    assert "already an observer or lifecycle handler “usage-record”" in loaded_coordinator.rejected["taken"]
    assert "3 is not an ObserverHandler" in loaded_coordinator.rejected["no-observer"]
    assert "RuntimeError: broken" in loaded_coordinator.rejected["raising"]
    assert "SystemExit: 3" in loaded_coordinator.rejected["leaving"]
    assert "the interval must be greater than 0" in loaded_coordinator.rejected["never"]


@pytest.mark.django_db
def test_an_installed_observer_runs_like_a_built_in_one(loaded_coordinator, clock, session_in):
    session_in(SessionStatus.RUNNING)
    assert loaded_coordinator.process_observer("licences", clock).success_count == 3
    assert loaded_coordinator.process_observer("quick", clock).success_count == 2
    assert loaded_coordinator.process_observer("slow", clock).success_count == 2


def test_a_setting_overrides_the_interval_of_an_observer(loaded_coordinator, settings, monkeypatch):
    quick = loaded_coordinator.observers["quick"]
    assert interval_of(quick) == timedelta(seconds=20)
    monkeypatch.setenv("OBSERVER_INTERVALS", "quick=90, slow = 0.5")
    settings.CONFIG["OBSERVER_INTERVALS"] = read_settings()["OBSERVER_INTERVALS"]
    assert interval_of(quick) == timedelta(seconds=90)
    assert interval_of(loaded_coordinator.observers["slow"]) == timedelta(seconds=0.5)


@pytest.mark.django_db
def test_pages_show_installed_and_broken_observers(loaded_coordinator, clock, client, viewer, monkeypatch):
    monkeypatch.setattr(coordinator, "observers", {**coordinator.observers, **loaded_coordinator.observers})
    monkeypatch.setattr(coordinator, "installed", loaded_coordinator.installed)
    monkeypatch.setattr(coordinator, "rejected", loaded_coordinator.rejected)
    (row,) = observer_statuses(clock(), names=["quick"])
    assert (row.interval, row.lag, row.text) == (timedelta(seconds=20), None, "Counts letters.")
    client.force_login(viewer)
    page = client.get("/observers/").content.decode()
    assert "Counts letters." in page
    assert all(name in page for name in LEFT_OUT)
    assert client.get("/observers/ready-made/").status_code == 200
    schedule = beat_schedule()
    assert schedule["observer:quick"]["schedule"] == 20.0
    assert schedule["observer:tick"]["args"] == ("tick",)
    assert schedule["tick"]["task"] == "scheduling.tasks.tick_all"

    # If the interval becomes invalid later, only this observer loses its place in the schedule.
    monkeypatch.setattr(type(loaded_coordinator.observers["quick"]), "interval", "soon")
    assert "observer:quick" not in beat_schedule()
    assert client.get("/observers/").status_code == 200


AT_START = """
import json, django
django.setup()
from django.core.checks import run_checks
from lcm.periodic import beat_schedule
warnings = [each.msg for each in run_checks() if each.id == "scheduling.W002"]
print(json.dumps({"schedule": sorted(beat_schedule()), "warnings": warnings}))
"""


def test_a_process_schedules_installed_observers_and_warns_of_broken_ones(package):
    completed = subprocess.run(
        [sys.executable, "-c", AT_START], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{package}:{ROOT}", "SECRET_KEY": "x" * 50,
             "DJANGO_SETTINGS_MODULE": "lcm.settings"},
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    result = json.loads(completed.stdout)
    assert {"observer:quick", "observer:licences", "usage-record", "tick"} <= set(result["schedule"])
    assert len(result["warnings"]) == len(LEFT_OUT)
    assert all(any(f"“{name}”" in warning for warning in result["warnings"]) for name in LEFT_OUT)
