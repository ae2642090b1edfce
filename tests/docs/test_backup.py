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

SESSION_COUNT = 2


@pytest.fixture
def path_without_sqlite3(tmp_path):
    """A PATH with Python and a few common tools, without the program `sqlite3`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("sh", "rm", "cp"):
        (folder / name).symlink_to(shutil.which(name))
    return str(folder)


def test_a_sqlite_backup_contains_the_write_ahead_log(tmp_path, path_without_sqlite3):
    """A row that is only in the write-ahead log is in the backup; a later row is not."""
    env = {**os.environ, "DATA_DIR": str(tmp_path), "PATH": path_without_sqlite3}
    back_up, restore = commands_of("backup.md", "SQLite")
    live = sqlite3.connect(tmp_path / "lcm.sqlite3", isolation_level=None)
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("CREATE TABLE notes (text TEXT)")
    live.execute("INSERT INTO notes VALUES ('before')")
    assert run(back_up, tmp_path, env).strip() == "ok"
    assert (tmp_path / "lcm-backup.sqlite3").stat().st_mode & 0o077 == 0
    live.execute("INSERT INTO notes VALUES ('after')")
    live.close()
    run(restore, tmp_path, env)
    with sqlite3.connect(tmp_path / "lcm.sqlite3") as restored:
        assert restored.execute("SELECT text FROM notes").fetchall() == [("before",)]


@pytest.fixture
def scratch():
    """A database that may be renamed: its name, the URL of its server and the URL of the test database."""
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
def test_a_postgresql_backup_is_restored(tmp_path: Path, scratch, session_in):
    """The dump of one database replaces another database, which is kept under another name."""
    for _ in range(SESSION_COUNT):
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
    assert found == (SESSION_COUNT,)
    with psycopg.connect(f"{server}/{name}_before") as before:
        assert before.execute(f"SELECT to_regclass('{LabletSession._meta.db_table}')").fetchone() == (None,)
