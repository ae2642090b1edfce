"""Style, layers, templates, migrations and settings are checked wherever the tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import clean_environment

# Independent of the database, and slow.
pytestmark = [pytest.mark.once, pytest.mark.slow]
ROOT = Path(__file__).parents[1]
CHECKS = (
    "ruff check",
    "ruff format --check",
    "lint-imports",
    "djade --check",
    "makemigrations --check --dry-run",
    "check --deploy --fail-level WARNING",
)


def lint(*options: str, data: Path) -> subprocess.CompletedProcess[str]:
    """Run the checks of the Makefile with the programs and settings of these tests."""
    env = clean_environment(DATA_DIR=str(data))
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        env.pop(name, None)
    installed = f"{sys.prefix}/.dev-installed"
    command = ["make", f"VENV={sys.prefix}", f"--assume-old={installed}", *options, "lint-quick"]
    return subprocess.run(
        command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_the_quick_checks_find_nothing(tmp_path):
    result = lint(data=tmp_path)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("check", CHECKS)
def test_none_of_the_quick_checks_is_left_out(check, tmp_path):
    assert check in lint("--dry-run", data=tmp_path).stdout
