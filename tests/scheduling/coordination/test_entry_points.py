"""Observers of other packages: registered, scheduled and run; a broken one is reported and left out."""

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
def loaded(package, own, monkeypatch):
    """A separate coordinator with LCM's names, after it loaded the package."""
    monkeypatch.syspath_prepend(str(package))
    for handler in BUILT_IN:
        own.register_handler(handler())
    own.load_observers()
    own.register_observer(coordinator.observers["usage-record"])
    yield own
    for name in [name for name in sys.modules if name.startswith(("own_observers", "licence_observer"))]:
        del sys.modules[name]


def test_broken_ones_are_named_and_left_out(loaded, caplog):
    assert set(loaded.observers) == {"licences", "quick", "slow", "ready-made", "tick", "usage-record"}
    assert sorted(loaded.refused) == LEFT_OUT
    assert loaded.observers["usage-record"] is coordinator.observers["usage-record"]
    assert loaded.refused["taken"] == "“usage-record” is the name of an observer of LCM"
    assert "3 is not an ObserverHandler" in loaded.refused["no-observer"]
    assert "RuntimeError: broken" in loaded.refused["raising"]
    assert "SystemExit: 3" in loaded.refused["leaving"]
    assert "the interval must be greater than 0" in loaded.refused["never"]


@pytest.mark.django_db
def test_an_installed_observer_runs_like_a_built_in_one(loaded, clock, session_in):
    session_in(SessionStatus.RUNNING)
    assert loaded.process_observer("licences", clock).success_count == 3
    assert loaded.process_observer("quick", clock).success_count == 2
    assert loaded.process_observer("slow", clock).success_count == 2


def test_the_interval_is_that_of_the_observer_or_of_the_setting(loaded, settings, monkeypatch):
    quick = loaded.observers["quick"]
    assert interval_of(quick) == timedelta(seconds=20)
    monkeypatch.setenv("OBSERVER_INTERVALS", "quick=90, slow = 0.5")
    settings.CONFIG["OBSERVER_INTERVALS"] = read_settings()["OBSERVER_INTERVALS"]
    assert interval_of(quick) == timedelta(seconds=90)
    assert interval_of(loaded.observers["slow"]) == timedelta(seconds=0.5)


@pytest.mark.django_db
def test_pages_show_them_and_name_the_broken(loaded, clock, client, viewer, monkeypatch):
    monkeypatch.setattr(coordinator, "observers", {**coordinator.observers, **loaded.observers})
    monkeypatch.setattr(coordinator, "installed", loaded.installed)
    monkeypatch.setattr(coordinator, "refused", loaded.refused)
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

    # An interval that is wrong later costs the observer its place, and beat nothing.
    monkeypatch.setattr(type(loaded.observers["quick"]), "interval", "soon")
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


def test_a_process_starts_with_them_and_warns_of_the_broken(package):
    done = subprocess.run(
        [sys.executable, "-c", AT_START], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{package}:{ROOT}", "SECRET_KEY": "x" * 50,
             "DJANGO_SETTINGS_MODULE": "lcm.settings"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"observer:quick", "observer:licences", "usage-record", "tick"} <= set(found["schedule"])
    assert len(found["warnings"]) == len(LEFT_OUT)
    assert all(any(f"“{name}”" in warning for warning in found["warnings"]) for name in LEFT_OUT)
