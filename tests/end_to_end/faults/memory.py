"""Memory of processes over time."""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NEAR_SECONDS = 60


@dataclass(frozen=True)
class Sample:
    """Memory of one process at one time, in MB; `private` is not shared with other processes."""

    seconds: float
    role: str
    pid: int
    rss: float
    private: float
    threads: int


def read_sample(role: str, pid: int, seconds: float) -> Sample | None:
    """Read the memory of a process; None if it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return None
    kilobytes = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in rollup.splitlines()[1:])
        if rest
    }
    private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return Sample(seconds, role, pid, kilobytes["Rss"] / 1024, private / 1024, threads)


class Recorder:
    """Appends samples to a CSV file and keeps them in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started_at = time.monotonic()
        self.samples: list[Sample] = []
        path.write_text("seconds,role,pid,rss_mb,private_mb,threads\n")

    def record(self, processes: Mapping[int, str]) -> None:
        seconds = time.monotonic() - self.started_at
        found = [read_sample(role, pid, seconds) for pid, role in processes.items()]
        present = [sample for sample in found if sample is not None]
        self.samples += present
        with self.path.open("a") as file:
            rows = [
                (f"{s.seconds:.0f}", s.role, s.pid, f"{s.rss:.1f}", f"{s.private:.1f}", s.threads)
                for s in present
            ]
            csv.writer(file).writerows(rows)


def at_minutes(samples: Iterable[Sample], minutes: Sequence[float]) -> list[list[str]]:
    """Return one row per process with its private memory at the given minutes; “–” while not running."""
    by_process: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        by_process[sample.role, sample.pid].append(sample)
    return [
        [f"{role} {pid}", *(_private_at(found, minute * 60) for minute in minutes)]
        for (role, pid), found in sorted(by_process.items())
    ]


def _private_at(samples: Sequence[Sample], seconds: float) -> str:
    nearest = min(samples, key=lambda sample: abs(sample.seconds - seconds))
    return f"{nearest.private:.1f}" if abs(nearest.seconds - seconds) <= NEAR_SECONDS else "–"


def growth_by_hour(samples: Sequence[Sample], *, after: float) -> float:
    """Return the slope of private memory in MB per hour: least squares after this many seconds."""
    points = [(s.seconds / 3600, s.private) for s in samples if s.seconds >= after]
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
