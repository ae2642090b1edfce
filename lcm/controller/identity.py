"""The controller's identity: a name that survives restarts and a locked data folder."""

from __future__ import annotations

import fcntl
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lcm.controller.config import Config, ConfigError


def controller_name(config: Config) -> str:
    """Return the configured name, or one stored in the data folder so that a restart keeps its leases."""
    if config.name:
        return config.name[:64]
    path = Path(config.data_dir) / "name"
    try:
        if not path.exists():
            path.write_text(f"{socket.gethostname()[:40]}-{uuid.uuid4().hex[:8]}")
        return path.read_text().strip()[:64]
    except OSError as error:
        raise ConfigError(f"{path} is not usable: {error}") from error


@contextmanager
def hold_data_folder(config: Config) -> Iterator[None]:
    """Lock the data folder until the block or the process ends."""
    folder = Path(config.data_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("a+")
    except OSError as error:
        raise ConfigError(f"{folder} is not usable: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(
                f"Another controller uses {folder}. Set a different data_dir for this one."
            ) from error
        yield
