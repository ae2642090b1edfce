"""Processes of a fault run: restarted when a fault kills them, recorded when they end by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lcm.supervisor.child_process import describe_exit, die_with_parent
from tests.support.control_plane import ROOT

# Like systemd's RestartSec=2.
RESTART_SECONDS = 2.0


@dataclass
class ManagedProcess:
    """One command in a session of its own. It dies with the thread that started it."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path
    # Kept down by a fault, which restarts it.
    held: bool = False
    expected_end: bool = False
    restart_at: float | None = None
    frozen: set[int] = field(default_factory=set)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.restart_at, self.expected_end = None, False
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv,
                cwd=ROOT,
                env=dict(self.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def members(self) -> list[int]:
        """Return the ids of the process and its descendants."""
        pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
        return sorted(pid for pid in pids if _session_of(pid) == self.pid)

    def children(self) -> list[int]:
        return [pid for pid in self.members() if pid != self.pid]

    def kill(self) -> None:
        """Kill the process; `reap` kills its descendants, as systemd does."""
        self.expected_end = True
        self._signal(self.pid, signal.SIGKILL)

    def freeze(self, pids: Sequence[int]) -> None:
        self.frozen |= set(pids)
        for pid in pids:
            self._signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.frozen:
            self._signal(pid, signal.SIGCONT)
        self.frozen.clear()

    def reap(self) -> str | None:
        """Detect the end once; return how it ended unless a fault caused it."""
        if self.process is None or self.process.poll() is None:
            return None
        exit_text = describe_exit(self.process.returncode)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process = None
        self.restart_at = time.monotonic() + RESTART_SECONDS
        return None if self.expected_end else exit_text

    def supervise(self) -> str | None:
        """Restart the process when due; return how it ended if it ended by itself."""
        exit_text = self.reap()
        if self.process is None and not self.held and time.monotonic() >= (self.restart_at or 0):
            self.start()
        return exit_text

    def stop(self) -> None:
        """Stop the process and its descendants."""
        if self.process is None:
            return
        self.thaw()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _signal(self, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return -1
