"""The controller runs with only httpx, prometheus-client and pydantic installed."""

import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.control_plane import ROOT

NEEDED = ("httpx", "prometheus-client", "pydantic")
CHECK = """
import importlib, pkgutil, sys
sys.path[:0] = [{packages!r}, {root!r}]
import lcm.controller
names = [each.name for each in pkgutil.iter_modules(lcm.controller.__path__)]
for name in names:
    importlib.import_module(f"lcm.controller.{{name}}")
for name in ("client.client", "observation.observer", "observation.model", "ports"):
    importlib.import_module(f"lcm.cml.{{name}}")
for absent in ("django", "yaml", "celery", "redis", "rest_framework", "gunicorn"):
    try:
        importlib.import_module(absent)
    except ImportError:
        continue
    raise SystemExit(f"{{absent}} is here: this is no bare environment")
print(len(names), "modules")
from lcm.controller.__main__ import main
raise SystemExit(main(["--help"]))
"""


def with_dependencies(names):
    """Return these distributions and their dependencies."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop().lower()
        if name in found:
            continue
        found[name] = distribution(name)
        for text in found[name].requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found.values()


@pytest.fixture
def isolated_python(tmp_path):
    """Return an environment without packages, and a folder with the allowed ones."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    packages = tmp_path / "packages"
    packages.mkdir()
    for each in with_dependencies(NEEDED):
        top_level = {path.parts[0] for path in each.files or () if ".." not in path.parts}
        for top in top_level - {"__pycache__"}:
            target = packages / top
            if not target.exists():
                target.symlink_to(Path(str(each.locate_file(top))))
    return tmp_path / "venv" / "bin" / "python", packages


def test_the_controller_imports_with_only_httpx_pydantic_and_prometheus_client(isolated_python):
    python, packages = isolated_python
    check = CHECK.format(packages=str(packages), root=str(ROOT))
    result = subprocess.run([python, "-I", "-c", check], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "modules" in result.stdout
    assert "--config" in result.stdout


def test_the_console_script_runs_the_controller():
    result = subprocess.run(
        [sys.executable, "-m", "lcm.controller", "--config", "/nowhere.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 2
    assert "/nowhere.toml could not be read" in result.stderr
    (entry,) = [each for each in distribution("lcm").entry_points if each.name == "lcm-controller"]
    assert entry.value == "lcm.controller.__main__:main"
