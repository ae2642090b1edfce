"""A simulator in a process of its own, as long as a `with` block lasts or until it is stopped."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Self

import httpx

from lcm.cml.simulator.admin_client import SimulatorAdmin

START_SECONDS = 60.0
STOP_SECONDS = 5.0


class SimulatorProcess:
    """Starts without controllers; `admin` adds them, all in this one process.

    The socket is opened here, so that the port is known and taken from the beginning.
    """

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = 0, tls: str = "", tls_key: str = "", ca_file: str = ""
    ) -> None:
        self._socket = socket.create_server((host, port), backlog=512)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{host}:{self._socket.getsockname()[1]}"
        self._arguments = [*(["--tls", tls] if tls else []), *(["--tls-key", tls_key] if tls_key else [])]
        self._process: subprocess.Popen[bytes] | None = None
        self.admin = SimulatorAdmin(self.url, verify=_trust(ca_file))

    def start(self) -> Self:
        """Start the process and wait until it answers."""
        number = self._socket.fileno()
        command = [sys.executable, "-m", "lcm.cml.simulator", "--no-controller", "--fd", str(number)]
        self._process = subprocess.Popen([*command, *self._arguments], pass_fds=[number])
        self._socket.close()
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError("The simulator did not start.")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """End the process, at once if it does not by itself."""
        self.admin.close()
        self._socket.close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answers(self) -> bool:
        try:
            self.admin.controllers()
        except httpx.HTTPError:
            return False
        return True


def _trust(ca_file: str) -> Any:
    if not ca_file:
        return True
    return ssl.create_default_context(cafile=ca_file)
