"""Checks whether a command line in deploy/ works in this checkout."""

import sys
from importlib.util import find_spec
from pathlib import Path

from django.core.management import get_commands

from tests.support.control_plane import ROOT

PROGRAMS = Path(sys.executable).parent
INSTALLED_AT = "/opt/lcm"
DEPLOY = ROOT / "deploy"


def problems(argv: list[str]) -> list[str]:
    """Return missing parts of a command line: its program, modules or management command."""
    if argv[:2] == ["sh", "-c"]:
        return problems(argv[2].rpartition("exec ")[2].split())
    program = argv[0].removeprefix(f"{INSTALLED_AT}/.venv/bin/")
    missing = [] if (PROGRAMS / program).exists() else [f"{argv[0]} is not installed"]
    missing += [f"there is no module {name}" for name in _modules(argv) if not _exists(name)]
    if argv[1:2] == ["manage.py"] and argv[2] not in get_commands():
        missing.append(f"there is no command {argv[2]}")
    return missing


def _modules(argv: list[str]) -> list[str]:
    behind = [argv[at + 1] for at, word in enumerate(argv) if word in ("-A", "-m")]
    named = [word.removeprefix("python:") for word in argv if word.startswith("python:")]
    applications = [word.partition(":")[0] for word in argv if word.endswith(":application")]
    return behind + named + applications


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def variables(path: Path) -> dict[str, str]:
    """Read an environment file as systemd and compose do: NAME=value, and comments."""
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)
