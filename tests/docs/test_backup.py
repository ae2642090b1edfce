"""Backup and restore, with the commands of docs/backup.md."""

import os
import shutil
import sqlite3
import sys
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from lcm.models import LabletSession
from tests.docs.commands import commands_of, run
from tests.support.postgres_programs import find_programs

BOTH_SESSIONS = 2


@pytest.fixture
def python_alone(tmp_path):
    """A PATH with Python and the most common tools: a bare machine has no program `sqlite3`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("sh", "rm", "cp"):
        (folder / name).symlink_to(shutil.which(name))
    return str(folder)


def test_sqlite_while_somebody_writes(tmp_path, python_alone):
    """What is still in the write-ahead log is in the backup; what came later is not."""
    env = {**os.environ, "DATA_DIR": str(tmp_path), "PATH": python_alone}
    back_up, restore = commands_of("backup.md", "SQLite")
    live = sqlite3.connect(tmp_path / "lcm.sqlite3", isolation_level=None)
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("CREATE TABLE told (what TEXT)")
    live.execute("INSERT INTO told VALUES ('before')")
    assert run(back_up, tmp_path, env).strip() == "ok"
    assert (tmp_path / "lcm-backup.sqlite3").stat().st_mode & 0o077 == 0
    live.execute("INSERT INTO told VALUES ('after')")
    live.close()
    run(restore, tmp_path, env)
    with sqlite3.connect(tmp_path / "lcm.sqlite3") as restored:
        assert restored.execute("SELECT what FROM told").fetchall() == [("before",)]


@pytest.fixture
def scratch():
    """A database that may be renamed: its name, the address of its server and that of the one under test."""
    test = settings.DATABASES["default"]
    server = f"postgres://{test['USER']}:{test['PASSWORD']}@{test['HOST']}:{test['PORT']}"
    name = f"{test['NAME']}_live"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield name, server, f"{server}/{test['NAME']}"
        for each in (name, f"{name}_before"):
            connection.execute(f'DROP DATABASE IF EXISTS "{each}" WITH (FORCE)')


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_postgresql(tmp_path: Path, scratch, session_in):
    """The dump of one database comes back in place of another, which is kept aside."""
    for _ in range(BOTH_SESSIONS):
        session_in("RUNNING")
    name, server, source = scratch
    programs = f"{find_programs({}, tmp_path)}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": programs, "ADMIN_URL": f"{server}/postgres"}
    back_up, restore, *_ = commands_of("backup.md", "PostgreSQL")
    tables = run(back_up, tmp_path, {**env, "DATABASE_URL": source})
    assert int(tables) > 0
    # As on the page, for a database of another name and owner.
    role = settings.DATABASES["default"]["USER"]
    restore = restore.replace("OWNER lcm", f"OWNER {role}").replace("DATABASE lcm", f"DATABASE {name}")
    restore = restore.replace("TO lcm_before", f"TO {name}_before")
    run(restore, tmp_path, {**env, "DATABASE_URL": f"{server}/{name}"})
    with psycopg.connect(f"{server}/{name}") as restored:
        found = restored.execute(f"SELECT count(*) FROM {LabletSession._meta.db_table}").fetchone()
    assert found == (BOTH_SESSIONS,)
    with psycopg.connect(f"{server}/{name}_before") as before:
        assert before.execute(f"SELECT to_regclass('{LabletSession._meta.db_table}')").fetchone() == (None,)
