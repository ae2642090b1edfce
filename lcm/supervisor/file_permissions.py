"""Permissions of the data folder: only LCM's user may read it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

PRIVATE_UMASK = 0o077
# Files and folders that may be readable by other users.
PRIVATE_FILES = (
    "lcm.sqlite3*", "secret-key", "up.lock", "valkey*", "celerybeat-schedule*", "metrics", "controller",
    "prometheus",
)  # fmt: skip


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
