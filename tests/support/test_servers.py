"""Servers for tests and benchmarks."""

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from tests.support import Missing, postgres_server, valkey_server
from tests.support.postgres_programs import find_programs

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def no_server_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)


@pytest.mark.parametrize(("durable", "fsync"), [(False, "off"), (True, "on")])
def test_a_private_postgresql_starts_and_is_removed(durable: bool, fsync: str) -> None:
    with postgres_server(durable=durable) as url:
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT current_database(), current_setting('fsync')").fetchone()
            folder = connection.execute("SELECT current_setting('data_directory')").fetchone()
        assert row == ("lcm", fsync)
        assert folder is not None
    assert not Path(folder[0]).parent.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


def test_a_given_database_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_DATABASE_URL", "postgres://somewhere/lcm")
    with postgres_server() as url:
        assert url == "postgres://somewhere/lcm"


def test_a_private_postgresql_is_removed_when_the_tests_fail() -> None:
    with pytest.raises(ZeroDivisionError), postgres_server() as url:
        raise ZeroDivisionError
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


def test_a_missing_postgresql_raises_an_error_with_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.postgres_programs._installed", lambda: iter([tmp_path]))
    monkeypatch.setattr("tests.support.postgres_programs.find_spec", {}.get)
    with pytest.raises(Missing, match=r"^PostgreSQL: install postgresql or .*or set TEST_DATABASE_URL$"):
        find_programs({}, tmp_path)


def test_a_private_valkey_starts_and_is_removed() -> None:
    with valkey_server() as url:
        client = redis.Redis.from_url(url)
        assert client.ping()
        client.close()
    assert not Path(urlsplit(url).path).parent.exists()
