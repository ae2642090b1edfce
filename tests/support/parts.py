"""The parts of `make test`: which tests run on which database."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NEEDS_REAL_PROCESSES = ("browser", "integration", "prometheus")
# For two cores. Tests that wait for processes leave time for one more worker.
WORKERS = 2
WORKERS_THAT_WAIT = 3


@dataclass(frozen=True)
class Part:
    """One run of pytest on one database; `without` holds the excluded marks."""

    name: str
    env: Mapping[str, str]
    without: Sequence[str] = ()
    workers: int = WORKERS

    def command(self, extra: Sequence[str]) -> list[str]:
        marks = ["-m", " and ".join(f"not {mark}" for mark in self.without)] if self.without else []
        return [sys.executable, "-m", "pytest", *self._spread(), *marks, *extra]

    def _spread(self) -> list[str]:
        return ["-n", str(self.workers), "--dist", "loadgroup"]

    def run(self, extra: Sequence[str]) -> "Outcome":
        suffix = f" without {', '.join(self.without)}" if self.without else ""
        print(f"\n=== {self.name}{suffix} ===", flush=True)
        start = time.monotonic()
        code = subprocess.run(self.command(extra), env=dict(self.env)).returncode
        return Outcome(f"{self.name}{suffix}", code, time.monotonic() - start)


@dataclass(frozen=True)
class Outcome:
    name: str
    code: int
    seconds: float

    def __str__(self) -> str:
        result = "passed" if self.code == 0 else f"FAILED (pytest exit code {self.code})"
        return f"{self.name}: {result} in {self.seconds:.0f} s"


def plan(
    *, base: Mapping[str, str], postgres: str | None, lacking: Sequence[str], fast: bool = False
) -> list[Part]:
    """Plan almost all tests on PostgreSQL, then database tests without real processes on SQLite.

    `lacking` holds the marks that cannot run on this machine. Without PostgreSQL the rest runs on SQLite.
    """
    if fast:
        return [Part("SQLite", base, (*NEEDS_REAL_PROCESSES, "postgres", "once", "slow"))]
    if postgres is None:
        return [Part("SQLite", base, lacking, WORKERS_THAT_WAIT)]
    return [
        Part("PostgreSQL", {**base, "DATABASE_URL": postgres}, (*lacking, "sqlite"), WORKERS_THAT_WAIT),
        Part("SQLite", base, (*NEEDS_REAL_PROCESSES, "postgres", "plain", "once")),
    ]
