"""Configuration of the controller, and its error messages."""

import fcntl

import pytest

from lcm.controller.config import Config, ConfigError, read_config
from lcm.controller.identity import controller_name, hold_data_folder

FILE = """
lcm_url = "https://lcm.example.org"
token = "lcm_from_file"
heartbeat_seconds = 7
[workers]
username = "robot"
password = "shared"
[workers.cml-us]
password = "theirs"
[workers.cml-us-02]
fingerprint = "ab"
"""


@pytest.fixture
def path(tmp_path):
    def write(text=FILE):
        file = tmp_path / "controller.toml"
        file.write_text(text)
        return str(file)

    return write


def test_a_file_is_enough(path):
    config = read_config(path(), {})
    assert (config.lcm_url, config.api_token(), config.heartbeat_seconds) == (
        "https://lcm.example.org",
        "lcm_from_file",
        7.0,
    )


def test_the_environment_is_enough():
    config = read_config(None, {"LCM_CONTROLLER_TOKEN": "lcm_x", "LCM_CONTROLLER_SPOOL_ENTRIES": "9"})
    assert (config.api_token(), config.spool_entries) == ("lcm_x", 9)


def test_the_environment_overrides_the_file(path):
    config = read_config(path(), {"LCM_CONTROLLER_TOKEN": "lcm_env", "LCM_CONTROLLER_WORKER_USERNAME": "me"})
    assert (config.api_token(), config.workers.username) == ("lcm_env", "me")


@pytest.mark.parametrize(
    ("slot", "pool", "username", "secret"),
    [
        ("cml-eu-01", "cml-eu", "robot", "shared"),
        ("cml-us-01", "cml-us", "robot", "theirs"),
        ("cml-us-02", "cml-us", "robot", "shared"),
    ],
)
def test_credentials_of_a_slot_override_those_of_the_pool_and_the_default(path, slot, pool, username, secret):
    found = read_config(path(), {}).credentials_for(slot, pool)
    assert (found.username, found.secret()) == (username, secret)


def test_secrets_in_files_are_reloaded(tmp_path):
    token, password = tmp_path / "token", tmp_path / "password"
    token.write_text("lcm_one\n")
    password.write_text("p1\n")
    config = read_config(
        None,
        {"LCM_CONTROLLER_TOKEN_FILE": str(token), "LCM_CONTROLLER_WORKER_PASSWORD_FILE": str(password)},
    )
    assert (config.api_token(), config.workers.secret()) == ("lcm_one", "p1")
    token.write_text("lcm_two")
    assert config.api_token() == "lcm_two"


@pytest.mark.parametrize(
    ("text", "error_text"),
    [
        ("token = ", "could not be read"),
        ("tokn = 'x'\ntoken = 'y'", "Unknown setting tokn"),
        ("token = 'x'\nconcurrency = 'many'", "concurrency must be a number"),
        ("token = 'x'\nconcurrency = 0", "concurrency must be greater than 0"),
        ("token = 'x'\nstats_seconds = true", "stats_seconds must be a number"),
        ("token = 'x'\nworkers = 3", "must be a table"),
        ("token = 'x'\n[workers]\nuser = 'y'", "Unknown setting workers.user"),
        ("token = 'x'\n[workers.cml-eu]\nuser = 'y'", "Unknown setting workers.cml-eu.user"),
        ("lcm_url = 'http://x'", "No token for LCM is configured"),
        ("token_file = '/nowhere/token'", "/nowhere/token could not be read"),
    ],
)
def test_an_invalid_configuration_is_rejected_with_a_reason(path, text, error_text):
    with pytest.raises(ConfigError, match=error_text):
        read_config(path(text), {})


def test_secrets_are_not_in_the_repr(path):
    text = repr(read_config(path(), {}))
    assert "lcm_from_file" not in text
    assert "shared" not in text


def test_the_name_survives_restarts(tmp_path):
    config = Config(token="x", data_dir=str(tmp_path))
    assert controller_name(config) == controller_name(config)
    assert controller_name(Config(token="x", data_dir=str(tmp_path), name="mine")) == "mine"


def test_a_data_folder_is_locked_by_one_controller(tmp_path):
    config = Config(token="x", data_dir=str(tmp_path / "new"))
    with (
        hold_data_folder(config),
        pytest.raises(ConfigError, match="Another controller"),
        hold_data_folder(config),
    ):
        pass
    with hold_data_folder(config), (tmp_path / "new" / "lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
