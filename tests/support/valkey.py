"""Private Valkey server for the duration of a block."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lcm.supervisor import valkey
from lcm.supervisor.child_process import ChildProcess
from lcm.supervisor.supervisor import Supervisor
from tests.support.errors import Missing


@contextmanager
def valkey_server() -> Iterator[str]:
    """Yield the URL (`unix:///…`) of an empty Valkey or Redis server."""
    supervisor = Supervisor(report=print)
    with tempfile.TemporaryDirectory(prefix="lcm-valkey-", dir="/tmp") as name:
        socket = Path(name) / "valkey.sock"
        try:
            child = ChildProcess(
                "valkey", valkey.command(valkey.find_server(), socket, socket.parent), os.environ
            )
            supervisor.start(child)
            valkey.wait_for(socket, lambda: child.is_running)
            yield f"unix://{socket}"
        except valkey.ValkeyError as error:
            raise Missing(f"Valkey: {error}") from error
        finally:
            supervisor.stop()
