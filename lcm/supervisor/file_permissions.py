"""The data folder is for LCM's user alone: no other user of the machine may read it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

PRIVATE_UMASK = 0o077
# Files and folders that earlier releases left readable for others.
PRIVATE_FILES = (
    "lcm.sqlite3*", "secret-key", "up.lock", "valkey*", "celerybeat-schedule*", "metrics", "controller",
    "prometheus",
)  # fmt: skip


def make_private(data_dir: Path) -> list[Path]:
    """Close the folder and what LCM keeps in it to other users, from now on; return what stays open."""
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
            # A folder for all users, such as /tmp, must stay open.
            return False
        path.chmod(stat.S_IMODE(found) & ~PRIVATE_UMASK)
    except PermissionError:
        return False
    except FileNotFoundError:
        # A process of an earlier start may remove its files meanwhile.
        return True
    return True
