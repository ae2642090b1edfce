"""The Dockerfile copies everything LCM needs and does not run as root. No container engine is needed."""

import json
import re
import tomllib

from tests.deploy.commands import DEPLOY, problems
from tests.support.control_plane import ROOT

LINES = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
STEPS = [line.split(None, 1) for line in LINES if line and not line.startswith("#")]
LAST = STEPS[max(at for at, step in enumerate(STEPS) if step[0] == "FROM") :]


def copied() -> set[str]:
    words = [rest.split() for step, rest in STEPS if step == "COPY" and not rest.startswith("--from")]
    return {source for sources in words for source in sources[:-1]}


def not_ignored() -> set[str]:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


def test_copied_paths_exist_and_are_not_ignored():
    assert all((ROOT / source).exists() for source in copied())
    assert copied() == not_ignored()


def test_every_package_is_in_the_image():
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = {name.removesuffix("*") for name in setup["packages"]["find"]["include"]}
    assert packages | {"templates", "static", "manage.py"} <= copied()


def test_it_does_not_run_as_root():
    (user,) = [rest for step, rest in LAST if step == "USER"]
    assert user == "lcm"
    assert any(re.search(r"useradd .* lcm\b", rest) for step, rest in LAST if step == "RUN")


def test_its_command_and_its_health_check_exist():
    (command,) = [json.loads(rest) for step, rest in LAST if step == "CMD"]
    assert problems(command) == []
    (health,) = [rest for step, rest in LAST if step == "HEALTHCHECK"]
    probe = json.loads(health.partition("CMD ")[2])
    assert probe[:2] == ["python", "-c"]
    compile(probe[2], "HEALTHCHECK", "exec")
    assert "/healthz" in probe[2]


def test_build_commands_exist():
    runs = [rest for step, rest in STEPS if step == "RUN"]
    manage = [run.partition(".venv/bin/")[2].split() for run in runs if "manage.py" in run]
    assert manage
    assert [problem for argv in manage for problem in problems(argv)] == []
