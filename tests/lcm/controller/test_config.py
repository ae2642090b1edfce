"""What the controller is told, and how it says what is wrong with it."""

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
    assert (config.lcm_url, config.key(), config.heartbeat_seconds) == (
        "https://lcm.example.org",
        "lcm_from_file",
        7.0,
    )


def test_the_environment_is_enough():
    config = read_config(None, {"LCM_CONTROLLER_TOKEN": "lcm_x", "LCM_CONTROLLER_SPOOL_ENTRIES": "9"})
    assert (config.key(), config.spool_entries) == ("lcm_x", 9)


def test_the_environment_is_over_the_file(path):
    config = read_config(path(), {"LCM_CONTROLLER_TOKEN": "lcm_env", "LCM_CONTROLLER_WORKER_USERNAME": "me"})
    assert (config.key(), config.workers.username) == ("lcm_env", "me")


@pytest.mark.parametrize(
    ("slot", "pool", "username", "secret"),
    [
        ("cml-eu-01", "cml-eu", "robot", "shared"),
        ("cml-us-01", "cml-us", "robot", "theirs"),
        ("cml-us-02", "cml-us", "robot", "shared"),
    ],
)
def test_credentials_are_those_of_the_slot_then_the_pool_then_all(path, slot, pool, username, secret):
    found = read_config(path(), {}).credentials_for(slot, pool)
    assert (found.username, found.secret()) == (username, secret)


def test_secrets_can_be_in_files_and_are_read_anew(tmp_path):
    token, password = tmp_path / "token", tmp_path / "password"
    token.write_text("lcm_one\n")
    password.write_text("p1\n")
    config = read_config(
        None,
        {"LCM_CONTROLLER_TOKEN_FILE": str(token), "LCM_CONTROLLER_WORKER_PASSWORD_FILE": str(password)},
    )
    assert (config.key(), config.workers.secret()) == ("lcm_one", "p1")
    token.write_text("lcm_two")
    assert config.key() == "lcm_two"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("token = ", "could not be read"),
        ("tokn = 'x'\ntoken = 'y'", "no setting tokn"),
        ("token = 'x'\nconcurrency = 'many'", "concurrency must be a number"),
        ("token = 'x'\nconcurrency = 0", "concurrency must be greater than 0"),
        ("token = 'x'\nstats_seconds = true", "stats_seconds must be a number"),
        ("token = 'x'\nworkers = 3", "must be a table"),
        ("token = 'x'\n[workers]\nuser = 'y'", "no setting workers.user"),
        ("token = 'x'\n[workers.cml-eu]\nuser = 'y'", "no setting workers.cml-eu.user"),
        ("lcm_url = 'http://x'", "There is no token"),
        ("token_file = '/nowhere/token'", "/nowhere/token could not be read"),
    ],
)
def test_what_cannot_be_used_is_said(path, text, complaint):
    with pytest.raises(ConfigError, match=complaint):
        read_config(path(text), {})


def test_secrets_are_not_in_what_is_logged(path):
    text = repr(read_config(path(), {}))
    assert "lcm_from_file" not in text
    assert "shared" not in text


def test_a_name_stays_over_restarts(tmp_path):
    config = Config(token="x", data_dir=str(tmp_path))
    assert controller_name(config) == controller_name(config)
    assert controller_name(Config(token="x", data_dir=str(tmp_path), name="mine")) == "mine"


def test_a_folder_is_for_one_controller(tmp_path):
    config = Config(token="x", data_dir=str(tmp_path / "new"))
    with (
        hold_data_folder(config),
        pytest.raises(ConfigError, match="Another controller"),
        hold_data_folder(config),
    ):
        pass
    with hold_data_folder(config), (tmp_path / "new" / "lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
