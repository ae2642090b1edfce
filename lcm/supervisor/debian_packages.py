"""Debian and Ubuntu packages, downloaded and unpacked into a folder without root.

`python -m lcm.supervisor.debian_packages FOLDER` downloads Prometheus in a separate process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcm.supervisor.child_process import die_with_parent

DOWNLOAD_SECONDS = 300.0
CHECK_SECONDS = 20.0
TOOLS = ("apt-get", "dpkg-deb")


class DownloadError(Exception):
    """The package cannot be downloaded, unpacked or used on this machine."""


@dataclass(frozen=True)
class Package:
    """A package and the required file in it, as a glob pattern below the root folder."""

    name: str
    file: str
    is_program: bool = False

    def find(self, folder: Path) -> Path | None:
        """Return the required file if the package is unpacked in `folder` and works."""
        return self._usable(folder / self.name)

    def download(
        self, folder: Path, report: Callable[[str], None], seconds: float = DOWNLOAD_SECONDS
    ) -> Path:
        """Return the required file, downloading it if needed. Raises DownloadError after `seconds`."""
        deadline = time.monotonic() + seconds
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / f"{self.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return self.find(folder) or self._install(folder, report, deadline)
        except OSError as error:
            raise DownloadError(str(error)) from error

    def _install(self, folder: Path, report: Callable[[str], None], deadline: float) -> Path:
        """Install in a temporary folder, and move the package into place only if it works."""
        scratch, place = folder / f"{self.name}.partial", folder / self.name
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            archive = _Apt(scratch, deadline).download(self.name, report)
            unpacked = scratch / "unpacked"
            _run(["dpkg-deb", "-x", str(archive), str(unpacked)], scratch, deadline)
            found = self._usable(unpacked)
            if found is None:
                raise DownloadError(f"the package {self.name} does not work on this machine")
            shutil.rmtree(place, ignore_errors=True)
            unpacked.rename(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return place / found.relative_to(unpacked)

    def _usable(self, unpacked: Path) -> Path | None:
        found = next(iter(sorted(unpacked.glob(self.file))), None)
        if found is None or (self.is_program and not _starts(found)):
            return None
        return found


PROMETHEUS = Package("prometheus", "usr/bin/prometheus", is_program=True)


def can_download() -> bool:
    """Return whether this machine has Debian's package tools."""
    return all(map(shutil.which, TOOLS))


@dataclass(frozen=True)
class _Apt:
    scratch: Path
    deadline: float

    def download(self, package: str, report: Callable[[str], None]) -> Path:
        """Return the archive. If the machine's package lists are missing or old, use private ones."""
        report(f"Downloading the package {package} without root")
        try:
            return self._download(package, ())
        except DownloadError:
            report("Downloading package lists first: the lists of this machine are missing or out of date")
        lists = self.scratch / "lists"
        (lists / "partial").mkdir(parents=True)
        private = (f"Dir::State::lists={lists}", "Acquire::Languages=none")
        self._apt_get(["update"], private)
        return self._download(package, private)

    def _download(self, package: str, options: Sequence[str]) -> Path:
        for failed in self.scratch.glob("*.deb"):
            failed.unlink()
        self._apt_get(["download", package], options)
        archives = list(self.scratch.glob("*.deb"))
        if len(archives) != 1:
            raise DownloadError(f"apt-get left {len(archives)} archives of {package} instead of one")
        return archives[0]

    def _apt_get(self, arguments: Sequence[str], options: Sequence[str]) -> None:
        # apt run as root switches to a sandbox user, who cannot enter the data folder.
        options = (f"Dir::Cache={self.scratch / 'cache'}", "APT::Sandbox::User=root", *options)
        (self.scratch / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        flags = [word for option in options for word in ("-o", option)]
        _run(["apt-get", "-qq", *flags, *arguments], self.scratch, self.deadline)


def _run(argv: Sequence[str], folder: Path, deadline: float) -> None:
    """Run a command in the folder until the deadline. If it fails, raise its last line of output."""
    # Uses a file, because a process that outlives the command would keep a pipe open.
    log = folder / "log"
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                argv,
                cwd=folder,
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=max(0.0, deadline - time.monotonic()),
                preexec_fn=die_with_parent,
            )
        except subprocess.TimeoutExpired:
            raise DownloadError(f"{argv[0]} took too long") from None
    if done.returncode:
        lines = log.read_text(errors="replace").split("\n")
        messages = [line.removeprefix("E: ") for line in lines if line.strip()]
        raise DownloadError(
            messages[-1] if messages else f"{argv[0]} failed with exit code {done.returncode}"
        )


def _starts(program: Path) -> bool:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=CHECK_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def main(folder: str) -> int:
    """Download Prometheus at low priority and print the result."""
    os.nice(10)
    started = time.monotonic()
    try:
        found = PROMETHEUS.download(Path(folder), report=lambda line: print(line, flush=True))
    except DownloadError as error:
        print(f"Prometheus could not be downloaded: {error}", flush=True)
        return 1
    print(f"Downloaded {found} in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
