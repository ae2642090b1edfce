"""A simulator in a separate process, for the duration of a `with` block or until stopped."""

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
    """A process that starts without controllers; `admin` adds them.

    The socket is opened here, so that the port is known and reserved before the process starts.
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
        """Start the process and wait until it responds."""
        number = self._socket.fileno()
        command = [sys.executable, "-m", "lcm.cml.simulator", "--no-controller", "--fd", str(number)]
        self._process = subprocess.Popen([*command, *self._arguments], pass_fds=[number])
        self._socket.close()
        deadline = time.monotonic() + START_SECONDS
        while not self._responds():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"The simulator did not start within {START_SECONDS:g} s.")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """Stop the process; kill it after STOP_SECONDS."""
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

    def _responds(self) -> bool:
        try:
            self.admin.controllers()
        except httpx.HTTPError:
            return False
        return True


def _trust(ca_file: str) -> Any:
    if not ca_file:
        return True
    return ssl.create_default_context(cafile=ca_file)
