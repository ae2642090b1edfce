"""Worker processes on the database of a test, for races and kills."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

from lcm.supervisor.child_process import die_with_parent
from tests.support.control_plane import ROOT
from tests.support.environment import clean_environment

Start = Callable[..., "subprocess.Popen[str]"]


@contextmanager
def worker_processes(module: str, data_dir: Path, *, connections: int = 0) -> Iterator[Start]:
    """Yield `start(argument, …)`, which runs the module in a process; kill remaining processes at the end."""
    started: list[subprocess.Popen[str]] = []
    url = "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**connection.settings_dict)
    env = clean_environment(
        DATABASE_URL=url, DATA_DIR=str(data_dir), LOG_LEVEL="ERROR", DATABASE_POOL_SIZE=str(connections)
    )

    def start(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate()
