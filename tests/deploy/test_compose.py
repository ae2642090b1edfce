"""compose.yaml is well-formed and refers only to existing things. No container engine is needed."""

from typing import Any

import pytest
import yaml

from tests.deploy.commands import DEPLOY, problems
from tests.support.environment import SETTINGS

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("prepare", "web", "watch", "worker", "beat", "controller")
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


def test_all_services_are_present():
    assert set(SERVICES) == {*OURS, "postgres", "valkey"}


@pytest.mark.parametrize("name", SERVICES)
def test_only_keys_that_compose_knows(name):
    assert set(SERVICES[name]) <= KEYS


@pytest.mark.parametrize("name", OURS)
def test_commands_exist(name):
    assert problems(SERVICES[name]["command"]) == []


@pytest.mark.parametrize("name", OURS)
def test_environment_variables_are_known_settings(name):
    given = set(SERVICES[name]["environment"])
    if name == "controller":
        assert all(each.startswith("LCM_CONTROLLER_") for each in given)
    else:
        assert given <= SETTINGS


@pytest.mark.parametrize("name", OURS)
def test_lcm_services_are_sandboxed(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", SERVICES)
def test_references_are_declared(name):
    service = SERVICES[name]
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    named = {volume.partition(":")[0] for volume in service.get("volumes", [])}
    assert named <= set(COMPOSE["volumes"])
    assert all((DEPLOY / f"{file}.example").exists() for file in service.get("env_file", []))


def test_services_awaited_as_healthy_have_a_health_check():
    waited = [
        (name, condition["condition"])
        for service in SERVICES.values()
        for name, condition in service.get("depends_on", {}).items()
    ]
    healthy = {name for name, condition in waited if condition == "service_healthy"}
    assert healthy == {"postgres", "valkey"}
    assert all("test" in SERVICES[name]["healthcheck"] for name in healthy)


def test_only_the_web_and_watch_servers_are_published_and_only_locally():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"web": ["127.0.0.1:8000:8000"], "watch": ["127.0.0.1:8001:8001"]}


def test_no_password_is_in_the_file():
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert ":${POSTGRES_PASSWORD:?" in SERVICES["web"]["environment"]["DATABASE_URL"]
