"""The systemd units: commands exist, systemd-analyze reports no problems, and services are sandboxed."""

import configparser
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lcm.supervisor.processes import MEMORY
from tests.deploy.commands import DEPLOY, INSTALLED_AT, problems
from tests.support.control_plane import ROOT
from tests.support.environment import SETTINGS

UNITS = sorted((DEPLOY / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
MOST_EXPOSED = 25  # tenths, of 100
needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze") and os.environ.get("CI") != "true",
    reason="systemd-analyze is missing",
)


def settings(unit: Path, name: str) -> list[str]:
    lines = unit.read_text().splitlines()
    return [line.partition("=")[2] for line in lines if line.partition("=")[0] == name]


@pytest.fixture
def installed_units(tmp_path: Path) -> list[Path]:
    """Return the units as if LCM were installed in this checkout, because systemd checks the programs."""
    for unit in UNITS:
        (tmp_path / unit.name).write_text(unit.read_text().replace(INSTALLED_AT, str(ROOT)))
    return sorted(tmp_path.iterdir())


@needs_systemd
def test_systemd_reports_no_problems(installed_units):
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *installed_units],
        capture_output=True,
        text=True,
        timeout=60,
    )
    ours = [line for line in done.stderr.splitlines() if "lcm" in line]
    assert (done.returncode, ours) == (0, [])


@needs_systemd
def test_systemd_reports_a_broken_unit(installed_units):
    web = next(unit for unit in installed_units if unit.name == "lcm-web.service")
    web.write_text(web.read_text().replace("bin/gunicorn", "bin/gunicorn-2"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *installed_units], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "gunicorn-2" in done.stderr


@needs_systemd
@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_service_is_sandboxed(unit):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", unit],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-400:]


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_commands_exist(unit):
    commands = settings(unit, "ExecStart")
    assert commands
    assert [problem for command in commands for problem in problems(command.split())] == []


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_variables_are_settings(unit):
    given = {pair.partition("=")[0] for line in settings(unit, "Environment") for pair in line.split()}
    assert given <= SETTINGS | MEMORY.keys()


def test_the_target_starts_all_parts_of_the_control_plane():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(DEPLOY / "systemd" / "lcm.target")
    wanted = set(parser["Unit"]["Wants"].split())
    assert wanted == {f"lcm-{part}.service" for part in ("web", "watch", "worker", "beat")}
    assert all((DEPLOY / "systemd" / name).exists() for name in wanted)
    stopped_with_it = {unit.name for unit in SERVICES if settings(unit, "PartOf") == ["lcm.target"]}
    assert stopped_with_it == wanted | {"lcm-prepare.service"}


def test_a_machine_may_omit_parts_as_in_the_scaling_guide():
    """Units that are only wanted may be missing, and no part requires another."""
    text = (ROOT / "docs" / "scaling.md").read_text()
    parts = {service.name for service in SERVICES if f"`{service.name}`" in text}
    assert parts == {f"lcm-{part}.service" for part in ("prepare", "web", "watch", "worker", "beat")}
    assert settings(DEPLOY / "systemd" / "lcm.target", "Requires") == []
    for service in SERVICES:
        assert set(settings(service, "Requires")) <= {"lcm-prepare.service"}
    # `systemctl mask` rejects units in /etc/systemd/system, where the installation puts LCM's.
    assert "systemctl mask" not in text
