"""Invariants of a fault run: pure functions from facts to violations. Times are Unix times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.end_to_end.faults.ledger import Entry

FINAL = frozenset({"TERMINATED", "CANCELLED", "EXPIRED", "FAILED"})
ENDING = frozenset({"COLLECTING", "STOPPING", "TERMINATED", "CANCELLED", "EXPIRED", "FAILED"})
# Two processes of one machine read the clock at slightly different times.
CLOCK_TOLERANCE = 0.05
# Over a slow network a controller knows LCM's time to within about a second.
EARLY_TOLERANCE = 2.0
CANCEL_TOLERANCE = 1.0
# Seconds beyond its interval until a handler must run again; fewer for the tick after the death of a process.
RECOVERY = 15.0
TICK, TICK_RECOVERY = "tick", 5.0


@dataclass(frozen=True)
class Step:
    """One transition in the history of a session."""

    to: str
    at: float
    reason: str = ""


@dataclass(frozen=True)
class Run:
    """One recorded run of a handler, an observer or a tick."""

    name: str
    started_at: float
    recorded_at: float
    error: str = ""


@dataclass(frozen=True)
class Window:
    """A fault from its start to the moment from which recovery counts.

    `control_plane`: it hits web, worker, beat, broker or database, so handlers may stand still until its end.
    `death`: it kills a process and leaves the broker and the database alone.
    """

    name: str
    start: float
    end: float
    control_plane: bool = True
    death: bool = False


@dataclass(frozen=True)
class LeaseChange:
    """A lease that changed holder without being released."""

    name: str
    at: float
    old_holder: str
    new_holder: str
    old_expires_at: float


@dataclass(frozen=True)
class LabRecord:
    """A lab on a simulated worker with the ports in its node tags."""

    worker: str
    session_id: str
    ports: tuple[int, ...]


Steps = Mapping[str, Sequence[Step]]


def lost_requests(entries: Iterable[Entry], stored: Collection[str]) -> list[str]:
    """Return acknowledged sessions that LCM does not have."""
    return [f"{entry.session_id} is gone" for entry in entries if entry.session_id not in stored]


def ended_early(entries: Iterable[Entry], steps: Steps) -> list[str]:
    """Return sessions that ended before the acknowledged end without being cancelled."""
    found = []
    for entry in entries:
        if entry.cancel_sent:
            continue
        first = next((step for step in steps.get(entry.session_id, ()) if step.to in ENDING), None)
        if first is not None and first.at < entry.promised_end - EARLY_TOLERANCE:
            early = entry.promised_end - first.at
            extended = " after an extension" if entry.extensions else ""
            found.append(
                f"{entry.session_id} became {first.to} {early:.1f} s before its end{extended}: {first.reason}"
            )
    return found


def ignored_cancels(entries: Iterable[Entry], steps: Steps) -> list[str]:
    """Return sessions whose cancel was acknowledged but that did not begin to end."""
    found = []
    for entry in entries:
        if entry.cancelled_at is None:
            continue
        limit = entry.cancelled_at + CANCEL_TOLERANCE
        if not any(step.to in ENDING and step.at <= limit for step in steps.get(entry.session_id, ())):
            found.append(f"{entry.session_id} continues after its cancel was acknowledged")
    return found


def unfinished(statuses: Mapping[str, str]) -> list[str]:
    """Return sessions without a final status."""
    return [f"{key} is still {status}" for key, status in statuses.items() if status not in FINAL]


def failed(steps: Steps) -> list[str]:
    """Return FAILED sessions: no fault of a run breaks a worker, so no session should fail."""
    return [
        f"{key} FAILED: {step.reason}"
        for key, history in steps.items()
        for step in history
        if step.to == "FAILED"
    ]


def steps_before_creation(created: Mapping[str, float], steps: Steps) -> list[str]:
    """Return transitions dated before the creation of their session."""
    return [
        f"{key} became {step.to} {created[key] - step.at:.3f} s before its creation"
        for key, history in steps.items()
        for step in history
        if key in created and step.at < created[key]
    ]


def overlapping_runs(runs: Iterable[Run]) -> list[str]:
    """Return runs of one name that were under way at the same moment.

    A run that reports the loss of its lease did not work on: a frozen process finds that when it continues.
    """
    found = []
    for name, runs_of_name in _by_name(run for run in runs if "lease" not in run.error).items():
        latest = None
        for run in sorted(runs_of_name, key=lambda run: run.started_at):
            if latest is not None and run.started_at < latest.recorded_at - CLOCK_TOLERANCE:
                both = latest.recorded_at - run.started_at
                found.append(f"{name}: two runs at once for {both:.2f} s")
            if latest is None or run.recorded_at > latest.recorded_at:
                latest = run
    return found


def late_runs(
    runs: Iterable[Run],
    faults: Sequence[Window],
    intervals: Mapping[str, float],
    *,
    observed_until: float,
) -> tuple[int, list[str]]:
    """Return how many recoveries were checked, and the names that did not run in time after a fault.

    `intervals`: how often each name runs. If another fault of the control plane overlaps the time that is
    allowed, the time counts from the end of that one.
    """
    starts = {
        name: sorted(run.started_at for run in runs_of_name) for name, runs_of_name in _by_name(runs).items()
    }
    checks, found = 0, []
    for fault in sorted(faults, key=lambda fault: fault.start):
        for name, interval in intervals.items():
            deadline = _deadline(fault, faults, name, interval)
            if deadline > observed_until:
                continue
            checks += 1
            after = next((start for start in starts.get(name, ()) if start >= fault.end), None)
            if after is None or after > deadline:
                duration = "not again" if after is None else f"{after - fault.end:.1f} s"
                found.append(
                    f"{name} ran {duration} after “{fault.name}”, allowed are {deadline - fault.end:.1f} s"
                )
    return checks, found


def _deadline(fault: Window, faults: Sequence[Window], name: str, interval: float) -> float:
    deadline = fault.end + interval + _recovery(fault, name)
    for other in sorted(faults, key=lambda fault: fault.start):
        if other.control_plane and other.end >= fault.start and other.start <= deadline:
            deadline = max(deadline, other.end + interval + _recovery(other, name))
    return deadline


def _recovery(fault: Window, name: str) -> float:
    return TICK_RECOVERY if name == TICK and fault.death else RECOVERY


def longest_gaps(runs: Iterable[Run], *, observed_until: float) -> dict[str, float]:
    """Return the longest time from the start of a run to the next or to the end, by name."""
    gaps = {}
    for name, runs_of_name in _by_name(runs).items():
        starts = sorted({run.started_at for run in runs_of_name} | {observed_until})
        gaps[name] = max((after - before for before, after in pairwise(starts)), default=0.0)
    return gaps


def stolen_leases(changes: Iterable[LeaseChange]) -> list[str]:
    """Return leases that got a new holder before the old one expired."""
    return [
        f"{change.name}: taken {change.old_expires_at - change.at:.2f} s too early by {change.new_holder[:8]}"
        for change in changes
        if change.old_holder != change.new_holder and change.old_expires_at > change.at + CLOCK_TOLERANCE
    ]


def duplicate_ports(labs: Iterable[LabRecord]) -> list[str]:
    """Return ports that labs of two sessions use on one worker."""
    holders: dict[tuple[str, int], set[str]] = defaultdict(set)
    for lab in labs:
        for port in lab.ports:
            holders[lab.worker, port].add(lab.session_id)
    return [
        f"port {port} of {worker} is in the labs of {', '.join(sorted(sessions))}"
        for (worker, port), sessions in holders.items()
        if len(sessions) > 1
    ]


def running_without_lab(running: Iterable[str], labs: Iterable[LabRecord]) -> list[str]:
    """Return RUNNING sessions without a lab on any worker."""
    present = {lab.session_id for lab in labs}
    return [f"{key} is RUNNING without a lab" for key in running if key not in present]


def wrong_lease_counts(slots: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return slots whose `lease_count` differs from the number of sessions they hold: (slot, count, held)."""
    return [
        f"slot {slot} counts {count} leases and holds {held}" for slot, count, held in slots if count != held
    ]


def unequal_usage(totals: Mapping[str, Sequence[int]]) -> list[str]:
    """Return levels whose sums differ from the records; `totals` maps each level to one sum per resource."""
    records = tuple(totals["records"])
    return [
        f"{level}: {tuple(sums)}, but records: {records}"
        for level, sums in totals.items()
        if tuple(sums) != records
    ]


def errors_by_kind(errors: Iterable[str]) -> list[str]:
    """Return each kind of error with its count, most frequent first."""
    return [f"{count} × {kind}" for kind, count in Counter(errors).most_common()]


def _by_name(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.name].append(run)
    return found
