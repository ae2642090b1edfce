"""The supervisor with shell scripts as children, which signal it through $PPID."""

import os
import time
from pathlib import Path

import pytest

from lcm.supervisor.child_process import ChildProcess, describe_exit
from lcm.supervisor.supervisor import Supervisor
from tests.support.control_plane import wait_until

FOREVER = "while :; do sleep 0.05; done"


def script(name: str, text: str, *, stops_last: bool = False) -> ChildProcess:
    return ChildProcess(name, ["sh", "-c", text], os.environ, stops_last=stops_last)


def child_that_ignores_stop(name: str, folder: Path, on_stop: str = "") -> ChildProcess:
    """Return a child that ignores SIGTERM, and creates a file once it does."""
    return script(name, f"trap '{on_stop}:' TERM; : > {folder / name}; {FOREVER}")


def wait_for_an_end(supervisor: Supervisor, messages: list[str], now: float) -> None:
    def has_message() -> bool:
        supervisor.supervise(now)
        return bool(messages)

    wait_until(has_message, "the end of a child is has_message")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def supervisor(messages: list[str]) -> Supervisor:
    return Supervisor(report=messages.append)


@pytest.mark.parametrize(
    ("code", "text"),
    [(0, "exited with code 0"), (3, "exited with code 3"), (-9, "was killed by SIGKILL")],
)
def test_an_exit_code_is_described(code: int, text: str) -> None:
    assert describe_exit(code) == text


def test_a_child_that_ends_is_reported_and_restarted(supervisor: Supervisor, messages: list[str]) -> None:
    child = script("web", "exit 3")
    supervisor.start(child)
    now = time.monotonic()
    wait_for_an_end(supervisor, messages, now)
    assert messages == ["web exited with code 3; restarting in 1 s"]
    supervisor.supervise(now + 0.9)
    too_early = child.pid
    supervisor.supervise(now + 1.1)
    in_time = child.pid
    assert too_early is None
    assert in_time is not None
    supervisor.stop()


def test_descendants_of_a_dead_child_are_killed(
    supervisor: Supervisor, messages: list[str], tmp_path: Path
) -> None:
    pid_file = tmp_path / "forked"
    supervisor.start(script("web", f"sleep 60 & echo $! > {pid_file}; kill -9 $$"))
    wait_for_an_end(supervisor, messages, time.monotonic())
    assert messages == ["web was killed by SIGKILL; restarting in 1 s"]
    wait_until(lambda: not is_alive(int(pid_file.read_text())), "the forked process is gone")
    supervisor.stop()


@pytest.mark.parametrize("signal_name", ["INT", "TERM", "HUP"])
def test_a_signal_ends_the_run(signal_name: str, supervisor: Supervisor) -> None:
    announced: list[bool] = []
    supervisor.start(script("web", f"sleep 0.3; kill -{signal_name} $PPID; {FOREVER}"))
    supervisor.run(is_ready=lambda: True, on_ready=lambda: announced.append(True))
    supervisor.stop()
    assert announced == [True]


def test_children_stop_on_request_and_the_broker_last(supervisor: Supervisor, tmp_path: Path) -> None:
    order = tmp_path / "order"

    def script_that_records(name: str) -> str:
        return f"trap 'echo {name} >> {order}; exit' TERM; : > {tmp_path / name}; {FOREVER}"

    for name in ("broker", "web", "beat"):
        supervisor.start(script(name, script_that_records(name), stops_last=name == "broker"))
    wait_until(lambda: all((tmp_path / name).exists() for name in ("broker", "web", "beat")), "all run")
    supervisor.stop()
    stopped = order.read_text().split()
    assert sorted(stopped[:2]) == ["beat", "web"]
    assert stopped[2] == "broker"


def test_a_child_that_does_not_stop_in_time_is_killed(
    supervisor: Supervisor, messages: list[str], tmp_path: Path
) -> None:
    child = child_that_ignores_stop("worker", tmp_path)
    supervisor.start(child)
    wait_until((tmp_path / "worker").exists, "it runs")
    pid = child.pid
    supervisor.stop(grace=0.2)
    assert pid is not None
    assert not is_alive(pid)
    assert messages == ["worker did not stop in time and was killed"]


def test_a_second_stop_kills_at_once(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start(child_that_ignores_stop("worker", tmp_path, on_stop="kill -INT $PPID; "))
    wait_until((tmp_path / "worker").exists, "it runs")
    started_at = time.monotonic()
    supervisor.stop(grace=60)
    assert time.monotonic() - started_at < 50
