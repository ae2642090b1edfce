"""Signals as messages: one loop waits for them instead of being interrupted by them."""

import select
import signal
import socket
from types import FrameType
from typing import Self

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
        """Sleep until a signal or the timeout; tell whether a stop was asked for."""
        readable, _, _ = select.select([self._read], [], [], timeout)
        received = self._read.recv(4096) if readable else b""
        return not STOP_SIGNALS.isdisjoint(received)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Stand in for a handler: the wake-up socket has already carried the signal's number."""
