"""`manage.py up` as a process under test."""

import fcntl
import http.client
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lcm.supervisor.address import Address
from lcm.supervisor.child_process import die_with_parent
from tests.support.environment import clean_environment

ROOT = Path(__file__).resolve().parents[2]
MARK = "LCM_BENCH_MARK"
START_SECONDS = 150.0


# Below the ephemeral ports, so that no outgoing connection takes a port between its choice and its use.
PORTS = range(15_000, 32_000)


def free_address() -> Address:
    """Return an unused loopback address."""
    while True:
        port = PORTS[secrets.randbelow(len(PORTS))]
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return Address("127.0.0.1", port)


def wait_until(
    condition: Callable[[], object],
    what: str,
    seconds: float = START_SECONDS,
    details: Callable[[], str] = str,
    pause: float = 0.05,
) -> None:
    """Poll until the condition holds; fail with its name and the current details."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}\n{details()}"
        time.sleep(pause)


@dataclass
class ControlPlane:
    """A supervisor and its processes, which are found by a marker in their environment."""

    data_dir: Path
    address: Address
    settings: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    process: subprocess.Popen[bytes] | None = None
    # Start with an empty folder; otherwise with a migrated database, which is faster.
    from_nothing: bool = False
    watch_address: Address = field(default_factory=lambda: free_address())

    def load_demo(self) -> None:
        """Load the demo fleet; LCM itself loads it only with DEBUG."""
        self.manage("load_demo", DEBUG="true")

    def manage(self, *arguments: str, **settings: str) -> None:
        """Run a management command on its data."""
        self._copy_prepared()
        environment = {**self._environment(), **settings}
        manage = [sys.executable, "manage.py", *arguments]
        subprocess.run(manage, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)

    def _copy_prepared(self) -> None:
        if not self.from_nothing and not self.data_dir.exists():
            shutil.copytree(_prepared(), self.data_dir)

    def start(self) -> None:
        self._copy_prepared()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def start_and_wait(self) -> None:
        """Start and wait for /readyz: database, broker, beat and worker are up."""
        self.start()
        wait_until(
            lambda: (self.status("/readyz") == 200 and self.watch_responds()) or self.has_ended,
            "/readyz is 200 and the watch process responds",
            details=lambda: self.output,
        )
        assert not self.has_ended, f"manage.py up ended:\n{self.output}"

    @property
    def log(self) -> Path:
        return self.data_dir.with_name(f"{self.data_dir.name}-{self.mark}.log")

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def watch_responds(self) -> bool:
        return self.status("/healthz", self.watch_address) == 200

    def status(self, path: str, address: Address | None = None) -> int | None:
        """Return the HTTP status of a page, or None if the server does not respond."""
        address = address or self.address
        connection = http.client.HTTPConnection(address.host, address.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, seconds: float = 90) -> int:
        assert self.process is not None
        return self.process.wait(seconds)

    def processes(self, containing: str = "") -> list[int]:
        """Return the marked processes whose command line contains the text."""
        return [pid for pid in _numbered(Path("/proc")) if self._is_ours(pid, containing)]

    def leader(self, containing: str) -> int:
        """Return the direct child of the supervisor with this text in its command line."""
        found = [pid for pid in self.processes(containing) if _parent(pid) == self.pid]
        assert len(found) == 1, f"{len(found)} children with {containing!r}"
        return found[0]

    def clean_up(self) -> None:
        """End all processes of this control plane."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def _environment(self) -> dict[str, str]:
        binds = {"WEB_BIND": str(self.address), "WATCH_BIND": str(self.watch_address)}
        basics = {"DATA_DIR": str(self.data_dir), **binds, MARK: self.mark}
        return clean_environment(**basics, BEAT_HEARTBEAT_INTERVAL="1", **self.settings)

    def _is_ours(self, pid: int, containing: str) -> bool:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return False
        return f"{MARK}={self.mark}".encode() in environment and containing in command


@contextmanager
def control_plane(
    data_dir: Path, address: Address, *, from_nothing: bool = False, **settings: str
) -> Iterator[ControlPlane]:
    """Yield a control plane that is not started yet; clean it up after the block."""
    plane = ControlPlane(data_dir, address, settings, from_nothing=from_nothing)
    try:
        yield plane
    finally:
        plane.clean_up()


def _prepared() -> Path:
    """Return a data folder with all migrations and static files, created once per test run."""
    folder = Path(os.environ.get("DATA_DIR") or tempfile.gettempdir()) / f"prepared-{os.getppid()}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = folder.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            environment = clean_environment(DATA_DIR=str(making))
            for command in (["migrate"], ["collectstatic", "--no-input"]):
                manage = [sys.executable, "manage.py", *command, "--verbosity=0"]
                subprocess.run(manage, cwd=ROOT, env=environment, check=True)
            making.rename(folder)
    return folder


def _numbered(folder: Path) -> Iterator[int]:
    return (int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal())


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])
