"""A simulator in a separate process, for the duration of a `with` block or until stopped."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from lcm.cml.simulator.admin_client import SimulatorAdmin
from tests.support.simulator.faults import Fault

ROOT = Path(__file__).parents[3]
START_SECONDS = 60.0
STOP_SECONDS = 5.0


class FaultAdmin(SimulatorAdmin):
    """Also injects faults, counts calls and edits labs."""

    def fail(self, name: str, fault: Fault) -> None:
        """Inject a fault."""
        self.request("POST", f"/{name}/faults", fault.to_dict())

    def clear_faults(self, name: str) -> None:
        """Remove all faults."""
        self.request("DELETE", f"/{name}/faults")

    def edit_lab(self, name: str, lab_id: str, kind: str) -> str:
        """Edit a lab without LCM's knowledge (see `Edit` for the kinds). Return the node's label."""
        edited: dict[str, str] = self.request("POST", f"/{name}/labs/{lab_id}/edits", {"kind": kind}).json()
        return edited["node"]

    def expire_tokens(self, name: str) -> None:
        """Invalidate all tokens."""
        self.request("DELETE", f"/{name}/tokens")

    def calls(self, name: str) -> dict[str, int]:
        """Return how often each call was made."""
        found: dict[str, int] = self.request("GET", f"/{name}/calls").json()
        return found

    def forget_calls(self, name: str) -> None:
        """Reset the call counts."""
        self.request("DELETE", f"/{name}/calls")


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
        self.admin = FaultAdmin(self.url, verify=_trust(ca_file))

    def start(self) -> Self:
        """Start the process and wait until it responds."""
        number = self._socket.fileno()
        command = [sys.executable, "-m", "tests.support.simulator", "--no-controller", "--fd", str(number)]
        self._process = subprocess.Popen([*command, *self._arguments], pass_fds=[number], cwd=ROOT)
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
