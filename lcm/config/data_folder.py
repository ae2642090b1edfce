"""The data folder of a single machine: permissions, lock, secret key and socket of the embedded Valkey."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The kernel rejects Unix socket paths longer than 107 bytes.
MAX_SOCKET_PATH = 100
PRIVATE_UMASK = 0o077
# Files and folders that may be readable by other users.
PRIVATE_FILES = (
    "lcm.sqlite3*", "secret-key", "up.lock", "valkey*", "celerybeat-schedule*", "metrics", "controller",
    "prometheus",
)  # fmt: skip


class AlreadyRunningError(Exception):
    """Another supervisor holds the data directory."""


def load_or_create_secret_key(data_dir: Path) -> str:
    """Return the secret key of this data folder; create it on first use, readable by its owner only."""
    path = data_dir / "secret-key"
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            path.chmod(0o600)
            file.write(secrets.token_urlsafe(48))
    except FileExistsError:
        pass
    return path.read_text()


def embedded_valkey_socket(data_dir: Path) -> Path:
    """Return the socket path of the embedded Valkey of this data folder."""
    path = data_dir / "valkey.sock"
    if len(str(path)) <= MAX_SOCKET_PATH:
        return path
    digest = hashlib.sha256(str(data_dir).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"lcm-{digest}" / "valkey.sock"


def make_private(data_dir: Path) -> list[Path]:
    """Remove other users' access to the folder and LCM's files. Return paths that stay accessible."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.umask(PRIVATE_UMASK)
    return [path for path in (data_dir, *_entries(data_dir)) if not _close(path)]


def _entries(data_dir: Path) -> Iterator[Path]:
    for pattern in PRIVATE_FILES:
        for path in data_dir.glob(pattern):
            yield path
            if path.is_dir() and not path.is_symlink():
                yield from path.rglob("*")


def _close(path: Path) -> bool:
    try:
        found = path.lstat().st_mode
        if stat.S_ISLNK(found) or not found & PRIVATE_UMASK:
            return True
        if found & stat.S_ISVTX:
            # A shared folder such as /tmp must stay open.
            return False
        path.chmod(stat.S_IMODE(found) & ~PRIVATE_UMASK)
    except PermissionError:
        return False
    except FileNotFoundError:
        # A process of an earlier start may remove its files meanwhile.
        return True
    return True


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
