"""Private PostgreSQL server for the duration of a block."""

import os
import pwd
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from lcm.supervisor.child_process import die_with_parent
from tests.support.control_plane import free_address
from tests.support.errors import Missing
from tests.support.postgres_programs import find_programs

START_SECONDS = 60
STOP_SECONDS = 20
SETTINGS = {"max_connections": "200", "shared_buffers": "256MB", "listen_addresses": "127.0.0.1"}
NOT_DURABLE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
}


@contextmanager
def postgres_server(durable: bool = False) -> Iterator[str]:
    """Yield the URL of an empty database: TEST_DATABASE_URL, or one on a private server.

    `durable` keeps fsync on, as benchmarks need it. Raise Missing if PostgreSQL is not available.
    """
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="lcm-postgres-", dir="/tmp", ignore_cleanup_errors=True) as name:
        server = PrivateServer(Path(name))
        try:
            yield server.start(SETTINGS if durable else SETTINGS | NOT_DURABLE)
        finally:
            server.stop()


@dataclass
class PrivateServer:
    """A cluster in its own folder, with a database `lcm` and a random password."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self, settings: dict[str, str]) -> str:
        """Create and start the cluster; return the URL of its database."""
        as_user = {"cwd": self.folder, **_server_user()}
        if "user" in as_user:
            os.chown(self.folder, as_user["user"], as_user["group"])
        programs = find_programs(as_user, self.folder)
        password = secrets.token_urlsafe(16)
        self._make_cluster(programs, password, as_user)
        port = free_address().port
        self._launch(
            programs, settings | {"port": str(port), "unix_socket_directories": str(self.folder)}, as_user
        )
        server = f"postgres://lcm:{password}@127.0.0.1:{port}"
        self._create_database(f"{server}/postgres")
        return f"{server}/lcm"

    def stop(self) -> None:
        """Stop without waiting for clients; kill the server if it does not stop."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _make_cluster(self, programs: Path, password: str, as_user: dict[str, Any]) -> None:
        secret = self.folder / "password"
        secret.write_text(password)
        options = [
            f"--pwfile={secret}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]
        result = subprocess.run(
            [programs / "initdb", "-D", self.folder / "data", "-U", "lcm", *options],
            **as_user,
            capture_output=True,
            text=True,
        )
        if result.returncode != 0:
            raise Missing(f"PostgreSQL: {programs / 'initdb'} failed: {result.stderr.strip()}")

    def _launch(self, programs: Path, settings: dict[str, str], as_user: dict[str, Any]) -> None:
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [programs / "postgres", "-D", self.folder / "data", *options],
                **as_user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def _create_database(self, url: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
                    connection.execute("CREATE DATABASE lcm")
                return
            except psycopg.OperationalError:
                self._require_running(deadline)
                time.sleep(0.1)

    def _require_running(self, deadline: float) -> None:
        ended = self.process is None or self.process.poll() is not None
        if ended or time.monotonic() > deadline:
            log = (self.folder / "log").read_text(errors="replace")
            raise Missing(f"PostgreSQL: the server did not start: {log.strip()}")


def _server_user() -> dict[str, Any]:
    """Return the user that runs the server, because PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise Missing("PostgreSQL: as root its server needs an unprivileged user named postgres or nobody")
