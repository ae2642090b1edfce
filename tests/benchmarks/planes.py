"""A control plane on the database and broker of a benchmark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.control_plane import ControlPlane, control_plane, free_address

SERVERS = ("DATABASE_URL", "REDIS_URL")


@contextmanager
def running_plane(**settings: str) -> Iterator[ControlPlane]:
    """Run `manage.py up` on the database, broker and folder of this benchmark."""
    given = {name: os.environ[name] for name in SERVERS if os.environ.get(name)}
    rates = {"API_RATE": "1000000/min", "CONTROLLER_RATE": "1000000/min"}
    folder = Path(os.environ["DATA_DIR"])
    with control_plane(folder, free_address(), LOG_LEVEL="WARNING", **given, **rates, **settings) as plane:
        plane.start_and_wait()
        yield plane


def web_workers(plane: ControlPlane) -> list[int]:
    """Return the web worker processes."""
    return _workers(plane, "lcm.wsgi")


def watch_workers(plane: ControlPlane) -> list[int]:
    """Return the worker process of the watch."""
    return _workers(plane, "lcm.asgi")


def _workers(plane: ControlPlane, application: str) -> list[int]:
    leader = plane.leader(application)
    return [pid for pid in plane.processes(application) if pid != leader]


def threads_of(pids: list[int]) -> int:
    return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)


def megabytes_of(pids: list[int]) -> float:
    """Return the resident memory in megabytes."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def cpu_seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
