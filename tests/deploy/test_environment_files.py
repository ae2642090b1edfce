"""Example environment files name existing settings with valid values, and contain no secrets."""

from urllib.parse import urlsplit

import pytest
import yaml

from lcm.config.environment import read_settings
from lcm.controller.config import read_config
from tests.deploy.commands import DEPLOY, variables
from tests.support.control_plane import ROOT
from tests.support.environment import SETTINGS

LCM = variables(DEPLOY / "lcm.env.example")
CONTROLLER = variables(DEPLOY / "controller.env.example")


def test_every_variable_is_a_setting():
    assert set(LCM) <= SETTINGS


def test_the_values_are_valid(monkeypatch):
    for name, value in LCM.items():
        monkeypatch.setenv(name, value)
    settings = read_settings()
    assert settings["HTTPS"] is True
    assert settings["ALLOWED_HOSTS"] == ["lcm.example.org", "127.0.0.1"]


@pytest.mark.parametrize("name", ["SECRET_KEY", "METRICS_TOKEN"])
def test_secrets_are_not_set(name):
    assert LCM[name] == ""


def test_no_url_has_a_password():
    assert [name for name, value in {**LCM, **CONTROLLER}.items() if urlsplit(value).password] == []


def test_the_controller_example_is_valid():
    config = read_config(None, {**CONTROLLER, "LCM_CONTROLLER_TOKEN": "key"})
    assert config.lcm_url == "https://lcm.example.org"
    assert config.workers.username == "lcm"
    names = {f"LCM_CONTROLLER_{name}" for name in ("LCM_URL", "TOKEN_FILE", "DATA_DIR")}
    worker = {f"LCM_CONTROLLER_WORKER_{name}" for name in ("USERNAME", "PASSWORD_FILE")}
    assert set(CONTROLLER) == names | worker


def test_git_ignores_every_file_with_a_secret():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    settings = [file for service in compose["services"].values() for file in service.get("env_file", [])]
    secrets = [secret["file"] for secret in compose["secrets"].values()]
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {f"/deploy/{name}" for name in (".env", *settings, *secrets)} <= set(ignored)
