"""Lock that allows one supervisor per data directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunningError(Exception):
    """Another supervisor holds the data directory."""


@contextmanager
def hold_lock(directory: Path) -> Iterator[None]:
    """Hold the lock until the block or the process ends."""
    with (directory / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise AlreadyRunningError(
                f"LCM is already running on {directory} (process {holder}). Stop it or set another DATA_DIR"
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
