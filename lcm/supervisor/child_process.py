"""A supervised process and its descendants."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

FIRST_DELAY = 1.0
LONGEST_DELAY = 30.0
STEADY_AFTER = 60.0


@dataclass
class RestartBackoff:
    """Restart delays that double from 1 to 30 seconds. A run of a minute or more resets the delay to 1."""

    delay: float = 0.0

    def after_run(self, seconds: float) -> float:
        steady = seconds >= STEADY_AFTER or not self.delay
        self.delay = FIRST_DELAY if steady else min(self.delay * 2, LONGEST_DELAY)
        return self.delay


PR_SET_PDEATHSIG = 1
# Loaded before the fork, because after it only simple calls are safe.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Between fork and exec, have the kernel kill this process when its parent dies (Linux only)."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def describe_exit(code: int) -> str:
    """Describe how a process ended, from subprocess's return code."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


@dataclass
class ChildProcess:
    """A command in a session of its own, so that Ctrl-C in the terminal reaches only the supervisor."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    stops_last: bool = False
    # For a one-shot command: called with the exit code instead of restarting.
    on_end: Callable[[int], None] | None = None
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    restart_at: float | None = None
    _process: subprocess.Popen[bytes] | None = None
    _started_at: float = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, now: float) -> None:
        self.restart_at = None
        self._started_at = now
        self._process = subprocess.Popen(
            self.argv,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def reap(self) -> int | None:
        """Return the exit code once after the process has ended, and kill its descendants."""
        if self._process is None or self._process.poll() is None:
            return None
        code = self._process.returncode
        self._signal_group(signal.SIGKILL)
        self._process = None
        return code

    def plan_restart(self, now: float) -> float:
        """Schedule the next start and return the delay in seconds."""
        delay = self.backoff.after_run(now - self._started_at)
        self.restart_at = now + delay
        return delay

    def terminate(self) -> None:
        """Send SIGTERM. The process stops its own children."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """Kill the process and its descendants."""
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
