"""Who this controller is: a name that stays over restarts, and a folder that only one process uses."""

from __future__ import annotations

import fcntl
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lcm.controller.config import Config, ConfigError


def controller_name(config: Config) -> str:
    """The configured name, else one that is kept in the data folder: a restart has its leases at once."""
    if config.name:
        return config.name[:64]
    path = Path(config.data_dir) / "name"
    try:
        if not path.exists():
            path.write_text(f"{socket.gethostname()[:40]}-{uuid.uuid4().hex[:8]}")
        return path.read_text().strip()[:64]
    except OSError as error:
        raise ConfigError(f"{path} cannot be used: {error}") from error


@contextmanager
def hold_data_folder(config: Config) -> Iterator[None]:
    """Hold the data folder until the block or the process ends, however it ends."""
    folder = Path(config.data_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("a+")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be used: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(
                f"Another controller runs on {folder}: give this one another data_dir."
            ) from error
        yield
