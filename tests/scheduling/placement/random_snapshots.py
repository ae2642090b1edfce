"""Random snapshots: small fleets in which every resource is scarce."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from scheduling.placement.framework.amounts import GPU, UNIT, Units
from scheduling.placement.framework.configuration import Configuration
from scheduling.placement.framework.cycle import run_cycle
from scheduling.placement.framework.model import FOREVER, Gang, Job, Node, Queue, Snapshot, Task
from tests.scheduling.placement.inline_plugins import units
from tests.scheduling.placement.scenario import apply_decisions, configuration_of

NOW = 1_000.0
SYSTEMS = ("", "cml", "vm")
ZONES = st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}])

BINPACKING = configuration_of()
SPREADING = configuration_of(
    plugins=[
        "cordon",
        "system",
        "labels",
        "leases",
        "ports",
        "resources",
        "timeslot",
        "quota",
        "spot",
        "fairshare",
        "priority",
        "submit_order",
        "spread",
        "gpuspread",
    ]
)
EVICTING = configuration_of(actions=["allocate", "reclaim", "preempt"])
CONFIGURATIONS = st.sampled_from([BINPACKING, SPREADING, EVICTING])

requests: st.SearchStrategy[Units] = st.tuples(
    st.sampled_from([0, 50, 100, 200, 350]),
    st.sampled_from([0, 100, 250, 400]),
    st.sampled_from([0, 0, 300]),
    st.sampled_from([0, 0, 0, 25, 50, 100, 150, 200]),
).map(lambda amounts: units(*amounts))


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Node:
    gpus = draw(st.sampled_from([0, 0, 1, 2]))
    free = draw(st.sampled_from([0, 0, 50])) if gpus else 0
    return Node(
        name=f"s-{number:02}",
        id=draw(st.sampled_from(["", f"id-{9 - number}"])),
        capacity=units(
            draw(st.sampled_from([200, 400, 800])),
            draw(st.sampled_from([200, 400, 800])),
            draw(st.sampled_from([0, 300, 900])),
            gpus * UNIT,
        ),
        system=draw(st.sampled_from(SYSTEMS)),
        labels=draw(ZONES),
        spot=draw(st.booleans()),
        cordoned=draw(st.sampled_from([False, False, False, True])),
        until=draw(st.sampled_from([FOREVER, FOREVER, NOW + 50])),
        max_leases=draw(st.sampled_from([1, 2, 5])),
        ports=draw(st.sampled_from([4, 10])),
        leaked=draw(st.sampled_from([0, 0, 3, 10])),
        taken=units(draw(st.sampled_from([0, 100])), 0, 0, free),
        taken_leases=draw(st.sampled_from([0, 0, 1])),
        taken_devices=((0, free),) if free else (),
    )


def nodes_of_one_size(gpus: int) -> Callable[[int], st.SearchStrategy[Node]]:
    """Powers of two, so that sums of shares are exact and ties are independent of order."""
    capacity = (512, 1024, 1024, gpus * UNIT)
    return lambda number: nodes(number).map(
        lambda node: replace(node, capacity=capacity, taken=units(node.taken[0]), taken_devices=())
    )


@st.composite
def jobs(draw: st.DrawFn, number: int, leaves: list[tuple[str, str]]) -> Job:
    queue, owner = draw(st.sampled_from(leaves))
    count = draw(st.sampled_from([1, 1, 2, 3]))
    tasks = tuple(
        Task(f"t{place}", draw(requests), draw(st.sampled_from([0, 0, 1, 3]))) for place in range(count)
    )
    return Job(
        id=f"j-{number:02}",
        queue=queue,
        owner=owner,
        tasks=tasks,
        priority=draw(st.sampled_from([10, 50, 90])),
        preemptible=draw(st.booleans()),
        created=float(draw(st.integers(0, 3))),
        gang=draw(st.sampled_from(list(Gang))),
        system=draw(st.sampled_from(SYSTEMS)) if draw(st.booleans()) else "",
        labels=tuple(draw(ZONES).items()) if draw(st.booleans()) else (),
        starts=draw(st.sampled_from([0.0, 0.0, NOW + 300, NOW + 9_000])),
        ends=draw(st.sampled_from([FOREVER, FOREVER, NOW + 40, NOW - 1])),
    )


@st.composite
def queues(draw: st.DrawFn) -> dict[str, Queue]:
    names = {"north": "", "south": "", "north/a": "north", "north/b": "north", "south/c": "south"}
    names |= {"north/a/ann": "north/a", "north/a/bob": "north/a"}
    return {
        name: Queue(
            name,
            parent,
            draw(st.sampled_from([1.0, 1.0, 2.0])),
            draw(st.sampled_from([0.2, 0.5, 1.0])),
            draw(st.sampled_from([{}, {}, {}, {"cpu_cores": 400}, {"sessions": 2}])),
        )
        for name, parent in names.items()
    }


LEAVES = [
    ("north/a", "north/a/ann"),
    ("north/a", "north/a/bob"),
    ("north/b", ""),
    ("south/c", ""),
    ("south", ""),
]


@st.composite
def snapshots(
    draw: st.DrawFn,
    max_nodes: int = 4,
    max_jobs: int = 9,
    slots: Callable[[int], st.SearchStrategy[Node]] = nodes,
) -> Snapshot:
    """Slots and waiting jobs, without running jobs."""
    return Snapshot(
        now=NOW,
        nodes=[draw(slots(number)) for number in range(draw(st.integers(0, max_nodes)))],
        queues=draw(queues()),
        jobs=[draw(jobs(number, LEAVES)) for number in range(draw(st.integers(0, max_jobs)))],
        templates=draw(st.lists(nodes(99), max_size=2)),
        pool="pool",
    )


@st.composite
def busy_snapshots(draw: st.DrawFn, **sizes: Any) -> Snapshot:
    """Snapshots after a cycle, with running, stopping and waiting jobs."""
    first = draw(snapshots(**sizes))
    waiting_from = draw(st.integers(0, len(first.jobs)))
    waiting, newer = first.jobs[waiting_from:], first.jobs[:waiting_from]
    after_first_cycle = apply_decisions(
        Snapshot(first.now, first.nodes, first.queues, waiting),
        run_cycle(_with_jobs(first, waiting), BINPACKING),
    )
    for job in after_first_cycle.jobs:
        job.leaving = bool(job.parts) and draw(st.sampled_from([False, False, True]))
    return Snapshot(
        first.now, first.nodes, first.queues, [*after_first_cycle.jobs, *newer], first.templates, first.pool
    )


def _with_jobs(snapshot: Snapshot, jobs_kept: Any) -> Snapshot:
    return Snapshot(
        snapshot.now, snapshot.nodes, snapshot.queues, jobs_kept, snapshot.templates, snapshot.pool
    )


def configuration_of_plugin(name: str, **arguments: Any) -> Configuration:
    return configuration_of(plugins=[{"name": name, "arguments": arguments}])


def has_gpus(snapshot: Snapshot) -> bool:
    return any(node.capacity[GPU] for node in snapshot.nodes)
