"""`manage.py up` with real processes: each one starts, and none is left behind."""

import os
import signal
import socket
import sqlite3
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from lcm.config.data_folder import embedded_valkey_socket
from lcm.supervisor.address import Address
from tests.lcm.supervisor.apt import path_with_apt
from tests.support import valkey_server
from tests.support.control_plane import ControlPlane, control_plane, free_address, wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def address() -> Address:
    return free_address()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "var"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder that must stay empty."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def first_migration(data_dir: Path) -> str:
    """Return when the database was created; it differs for another database."""
    with sqlite3.connect(data_dir / "lcm.sqlite3") as database:
        applied_at: str = database.execute("SELECT min(applied) FROM django_migrations").fetchone()[0]
        return applied_at


def last_heartbeat(data_dir: Path) -> str:
    """Return when a worker last ran the task that beat sends every second."""
    with sqlite3.connect(data_dir / "lcm.sqlite3", timeout=30) as database:
        beat_at: str = database.execute("SELECT at FROM lcm_heartbeat WHERE name = 'beat'").fetchone()[0]
        return beat_at


def broker_pid(data_dir: Path) -> int | None:
    """Return the process id of the embedded broker; None while no broker responds."""
    with Redis(unix_socket_path=str(embedded_valkey_socket(data_dir)), retry=Retry(NoBackoff(), 0)) as broker:
        try:
            return int(broker.info("server")["process_id"])
        except RedisError:
            return None


def restart_broker(plane: ControlPlane) -> None:
    """Kill the broker and wait until its successor carries a task from beat to a worker."""
    killed = broker_pid(plane.data_dir)
    assert killed
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: broker_pid(plane.data_dir) not in (None, killed), "the broker is back")
    before = last_heartbeat(plane.data_dir)
    wait_until(
        lambda: last_heartbeat(plane.data_dir) > before, "a worker runs tasks again", 60, lambda: plane.output
    )


def open_to_others(data_dir: Path) -> list[Path]:
    """Return paths that other users could read, except static files, which the web server serves to all."""
    public = ("static", "made")
    private = [path for path in data_dir.rglob("*") if path.relative_to(data_dir).parts[0] not in public]
    return [path for path in (data_dir, *private) if mode_of(path) & 0o077]


def mode_of(path: Path) -> int:
    """Return 0 for a missing file: SQLite removes its log with the last connection."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def test_up_serves_restarts_a_dead_child_and_stops_cleanly(
    data_dir: Path, address: Address, home: Path
) -> None:
    with control_plane(data_dir, address, from_nothing=True, HOME=str(home)) as plane:
        plane.start_and_wait()
        assert open_to_others(data_dir) == []
        with control_plane(data_dir, address.at_port(1)) as second:
            second.start()
            assert second.wait() == 1
            assert f"LCM is already running on {data_dir} (process {plane.pid})" in second.output

        killed = plane.leader("lcm.wsgi")
        os.kill(killed, signal.SIGKILL)
        wait_until(
            lambda: "web was killed by SIGKILL; restarting in 1 s" in plane.output, "the restart is reported"
        )
        wait_until(lambda: plane.status("/healthz") == 200, "the web responds again")
        assert plane.leader("lcm.wsgi") != killed

        watch = plane.leader("lcm.asgi")
        os.kill(watch, signal.SIGKILL)
        wait_until(
            lambda: "watch was killed by SIGKILL; restarting in 1 s" in plane.output,
            "the restart is reported",
        )
        wait_until(plane.watch_responds, "the watch process responds again")
        assert plane.leader("lcm.asgi") != watch

        users = [plane.leader("-A lcm.celery worker"), plane.leader("-A lcm.celery beat")]
        restart_broker(plane)
        restart_broker(plane)
        assert [plane.leader("-A lcm.celery worker"), plane.leader("-A lcm.celery beat")] == users
        assert "worker ended" not in plane.output

        plane.send(signal.SIGTERM)
        assert plane.wait() == 0
        assert plane.processes() == []
        assert list(home.iterdir()) == []


def test_killing_the_supervisor_ends_all_processes_and_keeps_the_data(
    data_dir: Path, tmp_path: Path, address: Address
) -> None:
    """A download of Prometheus that hangs neither delays the start nor outlives the supervisor."""
    hanging = path_with_apt(tmp_path, "exec sleep 600")
    with control_plane(data_dir, address, DEBUG="true", DEMO="true", PATH=hanging) as plane:
        plane.start_and_wait()
        # Files of an earlier release, readable for all users.
        assert open_to_others(data_dir) == []
        wait_until(lambda: plane.processes("sleep 600"), "apt-get hangs")
        made = first_migration(data_dir)
        plane.send(signal.SIGKILL)
        plane.wait()
        wait_until(lambda: not plane.processes(), "nothing is left", seconds=60)

    with control_plane(data_dir, address, DEBUG="true", DEMO="true") as plane:
        plane.start_and_wait()
        wait_until(lambda: address.url in plane.output, "the address is shown")
        assert "sign in as" in plane.output
        assert first_migration(data_dir) == made
        plane.send(signal.SIGINT)
        assert plane.wait() == 0
        assert plane.processes() == []


def test_a_port_in_use_is_reported_and_nothing_is_started(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with control_plane(data_dir, Address("127.0.0.1", port), from_nothing=True) as plane:
            plane.start()
            assert plane.wait() == 1
            assert (
                f"Port {port} on 127.0.0.1 is in use. Stop the other program or set WEB_BIND=" in plane.output
            )
            assert not (data_dir / "valkey").exists()
            assert not (data_dir / "lcm.sqlite3").exists()


def test_with_external_servers_nothing_embedded_starts(
    tmp_path: Path, data_dir: Path, address: Address
) -> None:
    database = tmp_path / "elsewhere.sqlite3"
    given = {"DATABASE_URL": f"sqlite:///{database}", "WEB_WORKERS": "1"}
    with (
        valkey_server() as redis_url,
        control_plane(data_dir, address, from_nothing=True, REDIS_URL=redis_url, **given) as plane,
    ):
        plane.start_and_wait()
        assert plane.processes("valkey-server") == []
        assert database.exists()
        assert not (data_dir / "lcm.sqlite3").exists()
        plane.send(signal.SIGTERM)
        assert plane.wait() == 0
