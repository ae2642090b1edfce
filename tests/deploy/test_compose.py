"""compose.yaml is well-formed, and what it names exists. No engine runs here."""

from typing import Any

import pytest
import yaml

from tests.deploy.commands import DEPLOY, problems
from tests.support.environment import SETTINGS

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("prepare", "web", "worker", "beat", "controller")
KEYS = {
    *(
        "image",
        "build",
        "restart",
        "read_only",
        "tmpfs",
        "cap_drop",
        "security_opt",
        "env_file",
        "environment",
    ),
    *("depends_on", "command", "healthcheck", "ports", "stop_grace_period", "profiles", "secrets", "volumes"),
}


def test_all_parts_are_there():
    assert set(SERVICES) == {*OURS, "postgres", "valkey"}


@pytest.mark.parametrize("name", SERVICES)
def test_only_keys_that_compose_knows(name):
    assert set(SERVICES[name]) <= KEYS


@pytest.mark.parametrize("name", OURS)
def test_commands_exist(name):
    assert problems(SERVICES[name]["command"]) == []


@pytest.mark.parametrize("name", OURS)
def test_environment_is_of_known_settings(name):
    given = set(SERVICES[name]["environment"])
    if name == "controller":
        assert all(each.startswith("LCM_CONTROLLER_") for each in given)
    else:
        assert given <= SETTINGS


@pytest.mark.parametrize("name", OURS)
def test_ours_are_confined(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_referred_to_is_declared(name):
    service = SERVICES[name]
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    named = {volume.partition(":")[0] for volume in service.get("volumes", [])}
    assert named <= set(COMPOSE["volumes"])
    assert all((DEPLOY / f"{file}.example").exists() for file in service.get("env_file", []))


def test_those_that_are_waited_for_healthy_have_a_check():
    waited = [
        (name, condition["condition"])
        for service in SERVICES.values()
        for name, condition in service.get("depends_on", {}).items()
    ]
    healthy = {name for name, condition in waited if condition == "service_healthy"}
    assert healthy == {"postgres", "valkey"}
    assert all("test" in SERVICES[name]["healthcheck"] for name in healthy)


def test_nothing_but_the_web_server_is_published_and_only_to_this_machine():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"web": ["127.0.0.1:8000:8000"]}


def test_no_password_is_written_down():
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert ":${POSTGRES_PASSWORD:?" in SERVICES["web"]["environment"]["DATABASE_URL"]
