"""Supervisor that keeps a set of processes running until it is stopped."""

import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Self

from lcm.supervisor.child_process import ChildProcess, describe_exit

STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
SIGNALS = STOP_SIGNALS | {signal.SIGCHLD}


class SignalInbox:
    """While open, SIGINT, SIGTERM, SIGHUP and SIGCHLD only wake `wait`."""

    def __enter__(self) -> Self:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._handlers_before = {number: signal.signal(number, _ignore) for number in SIGNALS}
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._read.close()
        self._write.close()

    def wait(self, timeout: float | None) -> bool:
        """Sleep until a signal or the timeout. Return whether a stop signal arrived."""
        readable, _, _ = select.select([self._read], [], [], timeout)
        received = self._read.recv(4096) if readable else b""
        return not STOP_SIGNALS.isdisjoint(received)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wake-up socket has already received the signal number."""


GRACE_SECONDS = 10.0
READY_POLL_SECONDS = 0.25


@dataclass
class Supervisor:
    """Starts children in order, and stops children with `stops_last` after the others."""

    report: Callable[[str], None]
    children: list[ChildProcess] = field(default_factory=list)

    def start(self, child: ChildProcess) -> None:
        self.children.append(child)
        child.start(time.monotonic())

    def run(self, *, is_ready: Callable[[], bool], on_ready: Callable[[], None]) -> None:
        """Supervise the children until SIGINT, SIGTERM or SIGHUP. `on_ready` is called once."""
        ready = False
        with SignalInbox() as inbox:
            while not inbox.wait(self._seconds_to_sleep(ready)):
                self.supervise(time.monotonic())
                if not ready and is_ready():
                    ready = True
                    on_ready()

    def supervise(self, now: float) -> None:
        """Schedule a restart for each child that ended, and start each child that is due."""
        for child in list(self.children):
            code = child.reap()
            if code is not None and child.on_end is not None:
                self.children.remove(child)
                child.on_end(code)
            elif code is not None:
                delay = child.plan_restart(now)
                self.report(f"{child.name} {describe_exit(code)}; restarting in {delay:.0f} s")
            elif child.restart_at is not None and child.restart_at <= now:
                child.start(now)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Terminate all children. Kill them after the grace period or on a second stop signal."""
        with SignalInbox() as inbox:
            for last in (False, True):
                children = [child for child in reversed(self.children) if child.stops_last is last]
                self._stop_children(children, grace, inbox)

    def _stop_children(self, children: list[ChildProcess], grace: float, inbox: SignalInbox) -> None:
        deadline = time.monotonic() + grace
        running = [child for child in children if child.pid is not None]
        for child in running:
            child.terminate()
        while running:
            running = [child for child in running if child.reap() is None]
            left = deadline - time.monotonic()
            if running and (left <= 0 or inbox.wait(left)):
                for child in running:
                    self.report(f"{child.name} did not stop in time and was killed")
                    child.kill()
                deadline = time.monotonic() + 1

    def _seconds_to_sleep(self, ready: bool) -> float | None:
        if not ready:
            return READY_POLL_SECONDS
        planned = [child.restart_at for child in self.children if child.restart_at is not None]
        return max(0.0, min(planned) - time.monotonic()) if planned else None
