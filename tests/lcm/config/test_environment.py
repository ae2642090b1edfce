"""Settings from environment variables: parsing, validation and the reference."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

import lcm
from lcm.config.database_url import (
    POOL_OPTIONS,
    POSTGRES_OPTIONS,
    PREPARE_THRESHOLD,
    SQLITE_OPTIONS,
    database_settings,
)
from lcm.config.environment import read_settings, reject_unsafe_settings
from lcm.config.mail_url import mail_settings
from lcm.config.reference import describe_settings, settings_reference

ROOT = Path(lcm.__file__).parent.parent
ALL = {setting.name: setting for group in describe_settings().values() for setting in group}

INVALID = [
    ("DEBUG", "perhaps"),
    ("HTTPS", "enabled"),
    ("WEB_WORKERS", "many"),
    ("WEB_WORKERS", "0"),
    ("WEB_WORKERS", "-2"),
    ("WEB_WORKERS", "1.5"),
    ("DATABASE_POOL_SIZE", "-1"),
    ("LOGIN_HOURS", "0"),
    ("IDEMPOTENCY_HOURS", "soon"),
    ("TOKEN_DAYS", "0"),
    ("WORKER_CONCURRENCY", "0"),
    ("BEAT_HEARTBEAT_INTERVAL", "often"),
    ("BEAT_HEARTBEAT_INTERVAL", "0"),
    ("BEAT_HEARTBEAT_INTERVAL", "nan"),
    ("BEAT_HEARTBEAT_MAX_AGE", "0.5"),
    ("CLEANUP_INTERVAL", "inf"),
    ("CLEANUP_INTERVAL", "5min"),
    ("TRUSTED_PROXIES", "10.0.0.1,proxy.example.org"),
]


@pytest.fixture
def environment(monkeypatch):
    for name in ALL:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def django(tmp_path, code, **settings):
    """Run Python code with only these settings in the environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ALL}
    env = {**kept, "DJANGO_SETTINGS_MODULE": "lcm.settings", "DATA_DIR": str(tmp_path), **settings}
    return subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True)


IMPORT_SETTINGS = "from django.conf import settings; "


def test_without_an_environment_every_setting_has_its_default(environment):
    assert read_settings() == {name: setting.default for name, setting in ALL.items()}


def test_an_empty_variable_counts_as_not_set(environment):
    environment.setenv("WEB_WORKERS", "  ")
    assert read_settings()["WEB_WORKERS"] == 2


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("DEBUG", "true", True),
        ("DEBUG", "1", True),
        ("DEBUG", "no", False),
        ("DEBUG", "0", False),
        ("WEB_WORKERS", "8", 8),
        ("DATABASE_POOL_SIZE", "0", 0),
        ("BEAT_HEARTBEAT_INTERVAL", "0.5", 0.5),
        ("ALLOWED_HOSTS", "a.example.org, b.example.org,", ["a.example.org", "b.example.org"]),
        ("TIME_ZONE", " Europe/Berlin ", "Europe/Berlin"),
        ("SECRET_KEY", "$ecret-with-a-dollar", "$ecret-with-a-dollar"),
        ("METRICS_TOKEN", "$HOME", "$HOME"),
    ],
)
def test_a_value_is_parsed_by_its_kind(name, text, value, environment):
    environment.setenv(name, text)
    assert read_settings()[name] == value


@pytest.mark.parametrize(("name", "text"), INVALID)
def test_an_invalid_value_is_rejected_with_the_name_of_the_setting(name, text, environment):
    environment.setenv(name, text)
    with pytest.raises(ImproperlyConfigured, match=name):
        read_settings()


def test_an_out_of_range_error_names_the_minimum(environment):
    environment.setenv("DECISIONS_PER_POOL", "2")
    with pytest.raises(ImproperlyConfigured, match="DECISIONS_PER_POOL is 2, but must be at least 100"):
        read_settings()


def test_all_invalid_values_of_a_group_are_reported_at_once(environment):
    environment.setenv("WEB_WORKERS", "many")
    environment.setenv("HTTPS", "perhaps")
    with pytest.raises(ImproperlyConfigured) as caught:
        read_settings()
    expected = "WEB_WORKERS must be a whole number, but is “many”. HTTPS must be a flag, but is “perhaps”"
    assert str(caught.value) == expected


@pytest.mark.parametrize("setting", ALL.values(), ids=ALL)
def test_every_setting_has_a_help_text(setting):
    assert len(setting.help) > 10
    assert setting.help.endswith(".")


def test_no_help_text_contains_a_pipe():
    rows = [line for line in settings_reference().splitlines() if line.startswith("| `")]
    assert {row.count("|") for row in rows} == {5}


def test_the_reference_has_a_row_for_every_setting():
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([a-z ]+) \|", settings_reference(), flags=re.MULTILINE)
    assert rows == [(name, setting.kind) for name, setting in ALL.items()]


def test_all_settings_in_use_are_documented():
    texts = [path.read_text() for path in sorted((ROOT / "lcm").rglob("*.py"))]
    used = {name for text in texts for name in re.findall(r"CONFIG\[\"([A-Z_]+)\"\]", text)}
    assert used <= set(ALL)


def test_documented_settings_are_used():
    files = [
        path
        for app in ("lcm", "scheduling", "fairshare", "observations")
        for path in (ROOT / app).rglob("*.py")
    ]
    texts = "".join(path.read_text() for path in files if path.name != "environment.py")
    assert [name for name in ALL if f'"{name}"' not in texts] == []


@pytest.mark.parametrize(
    ("size", "pool"),
    [(0, {}), (8, {"pool": {**POOL_OPTIONS, "max_size": 8}, "prepare_threshold": PREPARE_THRESHOLD})],
)
def test_options_in_the_database_url_are_kept_with_and_without_a_pool(size, pool, tmp_path):
    url = "postgres://lcm:p%40ss@db.example.org/lcm?sslmode=verify-full&sslrootcert=/etc/lcm/db-ca.pem"
    found = database_settings(url, tmp_path, size)
    assert found["PASSWORD"] == "p@ss"
    given = {"sslmode": "verify-full", "sslrootcert": "/etc/lcm/db-ca.pem"}
    assert found["OPTIONS"] == {**POSTGRES_OPTIONS, **given, **pool}


def test_sqlite_merges_default_options_with_url_options(tmp_path):
    assert database_settings("", tmp_path, 8)["OPTIONS"] == SQLITE_OPTIONS
    assert database_settings("sqlite:////lcm.sqlite3?timeout=3", tmp_path, 8)["OPTIONS"] == {
        **SQLITE_OPTIONS,
        "timeout": 3,
    }


def test_options_in_the_database_url_reach_django(tmp_path):
    url = "postgres://lcm@db.example.org/lcm?sslmode=verify-full"
    show = IMPORT_SETTINGS + "print(settings.DATABASES['default']['OPTIONS']['sslmode'])"
    assert django(tmp_path, show, SECRET_KEY="x" * 50, DATABASE_URL=url).stdout == "verify-full\n"


def test_without_a_secret_key_production_does_not_start(tmp_path):
    done = django(tmp_path, IMPORT_SETTINGS + "settings.SECRET_KEY")
    assert done.returncode != 0
    assert "ImproperlyConfigured" in done.stderr
    assert "SECRET_KEY" in done.stderr
    assert not (tmp_path / "secret-key").exists()


UNSAFE = [
    ({"DEMO": "true", "SECRET_KEY": "x" * 50}, "DEMO is on and DEBUG is off"),
    ({"SECRET_KEY": "x" * 31}, "at least 32 characters unless DEBUG is on; it has 31"),
]


@pytest.mark.parametrize(("given", "message"), UNSAFE)
def test_production_does_not_start_with_unsafe_settings(given, message, tmp_path):
    """Web, worker, beat and commands all read the settings first."""
    done = django(
        tmp_path, "import lcm.celery; lcm.celery.app.finalize(); import lcm.wsgi, lcm.asgi", **given
    )
    assert done.returncode != 0
    assert message in done.stderr.splitlines()[-1]


def test_unsafe_settings_are_allowed_with_debug():
    reject_unsafe_settings(debug=True, demo=True, secret_key="short")
    reject_unsafe_settings(debug=False, demo=False, secret_key="x" * 32)


def test_the_demo_is_loaded_with_debug_only(settings):
    settings.DEBUG = False
    with pytest.raises(CommandError, match="demo passwords are public"):
        call_command("load_demo")


def test_with_debug_a_private_secret_key_is_created_and_reused(tmp_path):
    keys = [
        django(tmp_path, IMPORT_SETTINGS + "print(settings.SECRET_KEY)", DEBUG="1").stdout for _ in range(2)
    ]
    assert keys[0] == keys[1]
    assert len(keys[0].strip()) >= 50
    assert (tmp_path / "secret-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("API_RATE", "often"),
        ("API_RATE", "0/min"),
        ("LOGIN_FAILURE_RATE", "10/year"),
        ("CONTROLLER_RATE", "6000"),
        ("LOG_FORMAT", "xml"),
        ("LOG_LEVEL", "LOUD"),
        ("TIME_ZONE", "Mars/Phobos"),
        ("DATABASE_URL", "nonsense"),
        ("WEB_WORKERS", "many"),
    ],
)
def test_the_django_check_names_an_invalid_setting(name, text, tmp_path):
    check = "from django.core.management import execute_from_command_line as run; run(['', 'check'])"
    done = django(tmp_path, check, SECRET_KEY="x" * 50, **{name: text})
    assert done.returncode != 0
    assert name in done.stderr.splitlines()[-1] or f"{name}:" in done.stderr or f"{name} must" in done.stderr


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp+tls://lcm:p%40ss@mail.example.org:587", ("mail.example.org", 587, "p@ss", True, False)),
        ("smtp+ssl://mail.example.org:465", ("mail.example.org", 465, "", False, True)),
        ("smtp://mail.example.org", ("mail.example.org", 25, "", False, False)),
    ],
)
def test_a_mail_url_becomes_the_settings_of_django(url, expected):
    found = mail_settings(url)
    names = ("HOST", "PORT", "HOST_PASSWORD", "USE_TLS", "USE_SSL")
    assert tuple(found[f"EMAIL_{name}"] for name in names) == expected
    assert mail_settings("")["EMAIL_BACKEND"].endswith("dummy.EmailBackend")


@pytest.mark.parametrize("url", ["https://lcm:s3cret@mail.example.org", "s3cret", "smtp://lcm:s3cret@:25"])
def test_the_error_about_a_mail_url_does_not_repeat_its_password(url):
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL") as error:
        mail_settings(url)
    assert "s3cret" not in str(error.value)
