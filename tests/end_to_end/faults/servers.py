"""PostgreSQL and Valkey servers that can be stopped and restarted on the same data."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg

from lcm.supervisor import valkey
from lcm.supervisor.child_process import die_with_parent
from tests.support.control_plane import free_address
from tests.support.postgres import SETTINGS, PrivateServer

MONITOR = "fault-monitor"


class Database(PrivateServer):
    """A durable PostgreSQL: committed data survives any restart."""

    url = ""

    def begin(self) -> None:
        self.url = self.start(SETTINGS)

    def _launch(self, programs: Path, settings: dict[str, str], as_user: dict[str, Any]) -> None:
        self._launched = (programs, settings, as_user)
        super()._launch(programs, settings, as_user)

    def shut_down(self) -> None:
        """Fast shutdown: connections are closed, transactions rolled back."""
        self.stop()

    def start_again(self) -> None:
        self._launch(*self._launched)

    @property
    def is_ready(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True, connect_timeout=2, application_name=MONITOR)

    def backends(self) -> list[int]:
        """Return the server processes of LCM's connections."""
        query = (
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = 'lcm' AND application_name <> %s AND pid <> pg_backend_pid() ORDER BY pid"
        )
        with self.connect() as connection:
            return [pid for (pid,) in connection.execute(query, [MONITOR])]

    def terminate_backends(self, pids: list[int]) -> None:
        with self.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [pids])


class Broker:
    """A Valkey with an append-only file on a loopback port, as in deploy/compose.yaml."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._socket = folder / "valkey.sock"
        port = free_address().port
        self.url = f"redis://127.0.0.1:{port}/0"
        command = valkey.command(valkey.find_server(), self._socket, folder)
        self._command = [*command, "--port", str(port), "--bind", "127.0.0.1"]
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        self.start_again()
        valkey.wait_for(self._socket, lambda: self._process is not None and self._process.poll() is None)

    def start_again(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,
            env=os.environ,
        )

    def shut_down(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(20)

    @property
    def is_ready(self) -> bool:
        return valkey.responds(self._socket)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
