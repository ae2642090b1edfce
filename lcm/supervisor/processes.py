"""Commands of LCM's processes."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from lcm.supervisor import valkey
from lcm.supervisor.child_process import ChildProcess

# A web process has dozens of threads. By default glibc creates eight memory arenas per core, and memory freed
# by one thread is not reused by the others.
MEMORY = {"MALLOC_ARENA_MAX": "2"}


def environment(data_dir: Path) -> dict[str, str]:
    """Return the environment of every child, with a shared folder for Prometheus metrics."""
    return {**MEMORY, **os.environ, "PROMETHEUS_MULTIPROC_DIR": str(data_dir / "metrics")}


def broker(socket: Path, data_dir: Path) -> ChildProcess:
    """Return the embedded Valkey. It stops last, because the other processes need it."""
    folder = data_dir / "valkey"
    folder.mkdir(exist_ok=True)
    return ChildProcess(
        "valkey", valkey.command(valkey.find_server(), socket, folder), os.environ, stops_last=True
    )


def web(env: Mapping[str, str]) -> ChildProcess:
    return ChildProcess(
        "web", _python("gunicorn", "-c", "python:lcm.config.gunicorn", "lcm.wsgi:application"), env
    )


def watch(env: Mapping[str, str]) -> ChildProcess:
    return ChildProcess(
        "watch", _python("gunicorn", "-c", "python:lcm.config.gunicorn_watch", "lcm.asgi:application"), env
    )


def worker(env: Mapping[str, str]) -> ChildProcess:
    options = ("--without-gossip", "--without-mingle")
    return ChildProcess("worker", _python("celery", "--quiet", "-A", "lcm.celery", "worker", *options), env)


def beat(env: Mapping[str, str], data_dir: Path) -> ChildProcess:
    schedule = str(data_dir / "celerybeat-schedule")
    options = ("--schedule", schedule, "--pidfile=")
    return ChildProcess("beat", _python("celery", "--quiet", "-A", "lcm.celery", "beat", *options), env)


def simulator(env: Mapping[str, str], port: int, state: Path) -> ChildProcess:
    options = ("--no-controller", "--port", str(port), "--state", str(state))
    return ChildProcess("simulator", _python("lcm.cml.simulator", *options), env)


def controller(env: Mapping[str, str], settings: Mapping[str, str]) -> ChildProcess:
    """Return a lablet controller with these settings, named as in its configuration."""
    variables = {f"LCM_CONTROLLER_{name.upper()}": value for name, value in settings.items()}
    return ChildProcess("controller", _python("lcm.controller"), {**env, **variables})


def demo(env: Mapping[str, str]) -> ChildProcess:
    return ChildProcess("demo", [sys.executable, "manage.py", "live_demo"], env)


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]
