"""Backup and restore, with the commands of docs/backup.md."""

import os
import shutil
import sqlite3
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from lcm.models import LabletSession
from tests.bench.postgres_programs import find_programs
from tests.docs.commands import commands_of, run

BOTH_SESSIONS = 2


@pytest.mark.skipif(
    not shutil.which("sqlite3") and os.environ.get("CI") != "true", reason="the program sqlite3 is missing"
)
def test_sqlite_while_somebody_writes(tmp_path):
    """What is still in the write-ahead log is in the backup; what came later is not."""
    env = {**os.environ, "DATA_DIR": str(tmp_path)}
    back_up, restore = commands_of("backup.md", "SQLite")
    live = sqlite3.connect(tmp_path / "lcm.sqlite3", isolation_level=None)
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("CREATE TABLE told (what TEXT)")
    live.execute("INSERT INTO told VALUES ('before')")
    assert run(back_up, tmp_path, env).strip() == "ok"
    live.execute("INSERT INTO told VALUES ('after')")
    live.close()
    run(restore, tmp_path, env)
    with sqlite3.connect(tmp_path / "lcm.sqlite3") as restored:
        assert restored.execute("SELECT what FROM told").fetchall() == [("before",)]


@pytest.fixture
def empty_database():
    """The URL of an empty database beside the one under test."""
    test = settings.DATABASES["default"]
    server = f"postgres://{test['USER']}:{test['PASSWORD']}@{test['HOST']}:{test['PORT']}"
    name = f"{test['NAME']}_restored"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield f"{server}/{name}", f"{server}/{test['NAME']}"
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_postgresql(tmp_path: Path, empty_database, session_in):
    for _ in range(BOTH_SESSIONS):
        session_in("RUNNING")
    target, source = empty_database
    programs = f"{find_programs({}, tmp_path)}:{os.environ['PATH']}"
    back_up, restore = commands_of("backup.md", "PostgreSQL")
    tables = run(back_up, tmp_path, {**os.environ, "PATH": programs, "DATABASE_URL": source})
    assert int(tables) > 0
    _, put_back = restore.splitlines()
    run(put_back, tmp_path, {**os.environ, "PATH": programs, "DATABASE_URL": target})
    with psycopg.connect(target) as restored:
        found = restored.execute(f"SELECT count(*) FROM {LabletSession._meta.db_table}").fetchone()
    assert found == (BOTH_SESSIONS,)
