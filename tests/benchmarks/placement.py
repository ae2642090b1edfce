"""Plugin scheduler: placements per second in memory and committed, a cycle without a placement, memory.

The floor in memory is a first fit in plain Python over the same jobs and slots with a pointer per shape,
without plugins, queues and reasons. The floor of a commit is one COPY of as many ports and transitions and
one UPDATE of as many reservations, sessions and kernels, all with the same values.
"""

from __future__ import annotations

import random
import resource
import time
from dataclasses import dataclass

from tests.benchmarks.measuring import print_table, start_django

SHAPES = 200
TRIES = 3
GROWTH = [
    *((pending, slots) for slots in (500, 1_000) for pending in (5_000, 10_000, 20_000, 50_000)),
    *((pending, 5_000) for pending in (5_000, 10_000, 20_000)),
]
COMMITTED = ((4_000, 1_000), (20_000, 5_000))


@dataclass(frozen=True)
class Case:
    """A scheduling cycle in memory."""

    pending: int
    slots: int
    name: str = "default plugins"
    shapes: int = SHAPES
    aim: str = ""
    full: bool = False
    # Number of different slot sizes.
    sizes: int = 1


CASES = [
    *(Case(pending, slots) for pending, slots in GROWTH),
    Case(50_000, 5_000, aim="≥ 25,000/s"),
    Case(50_000, 5_000, shapes=5_000, aim="≥ 10,000/s"),
    Case(50_000, 5_000, "nothing fits", aim="≤ 1 s", full=True),
    Case(50_000, 5_000, "slots of three sizes", sizes=3),
]


@dataclass
class PlacementFigures:
    placed: int
    seconds: float
    floor: float

    @property
    def rate(self) -> float:
        return self.placed / self.seconds


def _seconds(found: PlacementFigures) -> float:
    return found.seconds


def main() -> None:
    start_django()
    from django.db import connection

    if connection.vendor == "postgresql":
        _in_memory()
    _committed(connection.vendor)


def _in_memory() -> None:
    rows = []
    for case in CASES:
        found = min((_cycle(case) for _ in range(TRIES)), key=_seconds)
        rows.append(
            [
                case.name,
                f"{case.pending:,} × {case.slots:,}",
                f"{case.shapes:,}",
                f"{found.placed:,}",
                f"{found.seconds:.2f}",
                f"{found.rate:,.0f}" if found.placed else "",
                f"{found.seconds / found.floor:.1f}",
                case.aim,
            ]
        )
    heads = ["cycle", "pending × slots", "shapes", "placed", "CPU s", "placed/s", "÷ floor", "aim"]
    print_table(f"A cycle in memory, best of {TRIES}", heads, rows)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nMost memory of the process: {megabytes:,.0f} MB (aim: at most 1,024).")


def _cycle(case: Case) -> PlacementFigures:
    from scheduling.placement.framework.configuration import read_configuration
    from scheduling.placement.framework.cycle import run_cycle

    usual = read_configuration("")
    snapshot = make_snapshot(case.pending, case.slots, case.shapes, full=case.full, sizes=case.sizes)
    floor = _first_fit(snapshot)
    begun = time.process_time()
    cycle = run_cycle(snapshot, usual)
    seconds = time.process_time() - begun
    assert not cycle.ssn.failures.by_plugin
    return PlacementFigures(len(cycle.placed), seconds, floor)


def make_snapshot(pending: int, slots: int, shapes: int, *, full: bool = False, sizes: int = 1):  # type: ignore[no-untyped-def]
    """Return jobs of many shapes from many people, and slots of one or more sizes."""
    from scheduling.placement.framework.model import Job, Node, Queue, Snapshot, Task
    from tests.scheduling.placement.inline_plugins import units

    chance = random.Random(1)
    cpu, *more = capacity = units(1_600, 6_400, 50_000)
    taken = capacity if full else units()
    nodes = [
        Node(f"slot-{number:05}", (cpu * (1 + number % sizes), *more), max_leases=20, taken=taken)
        for number in range(slots)
    ]
    queues = {}
    for domain in (f"domain-{number}" for number in range(10)):
        queues[domain] = Queue(domain, factor=chance.random())
        for project in (f"{domain}/project-{number}" for number in range(10)):
            queues[project] = Queue(project, domain, factor=chance.random())
            for person in (f"{project}/person-{number}" for number in range(10)):
                queues[person] = Queue(person, project, factor=chance.random())
    people = [queue for queue in queues.values() if queue.name.count("/") == 2]
    requests = [
        units(100 + number % 97, 300 + number * 7 % 500, 100 + number // 97) for number in range(shapes)
    ]
    jobs = []
    for number in range(pending):
        person = chance.choice(people)
        task = Task("lab", requests[number % shapes], 2)
        jobs.append(
            Job(
                f"job-{number}",
                person.parent,
                (task,),
                owner=person.name,
                priority=chance.choice((10, 50, 90)),
                created=chance.random() * 1e5,
            )
        )
    return Snapshot(1e9, nodes, queues, jobs)


def _first_fit(snapshot) -> float:  # type: ignore[no-untyped-def]
    """Return the CPU seconds of a plain first fit."""
    begun = time.process_time()
    free = [[cap - used for cap, used in zip(n.capacity, n.taken, strict=True)] for n in snapshot.nodes]
    pointers: dict[tuple[int, ...], int] = {}
    for job in snapshot.jobs:
        request = job.tasks[0].request
        at = pointers.get(request, 0)
        while at < len(free) and any(
            requested > remaining for requested, remaining in zip(request, free[at], strict=True)
        ):
            at += 1
        pointers[request] = at
        if at < len(free):
            free[at] = [remaining - requested for remaining, requested in zip(free[at], request, strict=True)]
    return time.process_time() - begun


def _committed(vendor: str) -> None:
    from tests.benchmarks.fill_capacity import CapacityFiller

    filler = CapacityFiller()
    rows = []
    for pending, slots in COMMITTED:
        found = _commit(filler, pending, slots)
        aim = "≥ 4,000/s" if vendor == "postgresql" else ""
        numbers = [f"{found.placed:,}", f"{found.seconds:.2f}", f"{found.rate:,.0f}"]
        rows.append([f"{pending:,} × {slots:,}", *numbers, f"{found.seconds / found.floor:.1f}", aim])
    heads = ["placements × slots", "placed", "s", "placed/s", "÷ floor", "aim"]
    print_table(f"Committed with history, leases, kernels, ports and decisions, {vendor}", heads, rows)


def _commit(filler, pending: int, slots: int) -> PlacementFigures:  # type: ignore[no-untyped-def]
    """Measure only the commit of decisions made in memory, as a tick writes them."""
    from django.utils import timezone

    from scheduling.capacity.runtimes.registry import runtime_for
    from scheduling.capacity.steps.context import TickContext
    from scheduling.capacity.steps.place import commit_cycle
    from scheduling.placement.framework.configuration import read_configuration
    from scheduling.placement.framework.cycle import run_cycle
    from scheduling.selectors.snapshots import snapshot_of

    pool = filler.fill("READY", pending=pending, slots=slots, room_for=pending // slots)
    usual, now = read_configuration(""), timezone.now()
    cycle = run_cycle(snapshot_of(pool, usual, now=now, limit=pending), usual)
    floor = _bare_writes(pool, pending)
    tick = TickContext(pool=pool, runtime=runtime_for(pool), now=now, is_lease_held=lambda: True)
    begun = time.perf_counter()
    commit_cycle(tick, cycle)
    seconds = time.perf_counter() - begun
    done = tick.counts["placed"]
    assert done == pending, (done, pending)
    return PlacementFigures(done, seconds, floor)


def _bare_writes(pool, count: int) -> float:  # type: ignore[no-untyped-def]
    """Write the same number of rows without checks, then roll back."""
    from uuid import uuid4

    from django.db import transaction
    from django.utils import timezone

    from lcm.db.bulk import insert_rows
    from lcm.models import Kernel, LabletSession, SessionTransition
    from scheduling.models import Reservation

    now = timezone.now()
    waiting = Reservation.objects.filter(pool=pool, phase="PENDING")
    some = list(waiting.values_list("session_id", flat=True)[:count])
    begun = time.perf_counter()
    with transaction.atomic():
        waiting.filter(session_id__among=some).update(reason="bench")
        LabletSession.objects.filter(pk__among=some).update(status_since=now)
        Kernel.objects.filter(session_id__among=some).update(started_at=now)
        columns = ["id", "session", "attempt", "from_status", "to_status", "at", "actor", "reason"]
        step = (1, "PENDING", "SCHEDULED", now, "bench", "")
        # A transition, a change log entry, a decision and two ports per session.
        for _ in range(5):
            insert_rows(SessionTransition, columns, [(uuid4().hex, key.hex, *step) for key in some])
        transaction.set_rollback(True)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
