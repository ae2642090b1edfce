"""The number and kinds of new slots that waiting jobs need."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.placement.framework.amounts import amounts_of
from scheduling.placement.framework.demand import SlotSupply, slots_needed
from scheduling.placement.framework.model import Gang, Job, Node, Task
from tests.scheduling.placement.inline_plugins import units

numbers = count()


def job(cpu=1, *, ports=0, gang=Gang.TOGETHER, tasks=1, **fields) -> Job:
    each = amounts_of(
        {"cpu_cores": cpu, **{key: fields.pop(key) for key in ("memory_gb", "gpu") if key in fields}}
    )
    kernels = tuple(Task(f"k{place}", each, ports) for place in range(tasks))
    return Job(f"j{next(numbers)}", "lab", kernels, gang=gang, **fields)


SLOT = Node(
    "new", amounts_of({"cpu_cores": 4, "memory_gb": 8, "gpu": 1}), max_leases=10, ports=10, system="cml"
)


@pytest.mark.parametrize(
    ("jobs", "limit", "needed"),
    [
        ([], 9, 0),
        ([job()], 9, 1),
        ([job(2) for _ in range(5)], 9, 3),
        ([job(2) for _ in range(5)], 2, 2),
        ([job(2) for _ in range(5)], 0, 0),
        ([job(5), job(1)], 9, 1),
        ([job(5)], 9, 0),
        ([job(1, memory_gb=9)], 9, 0),
        ([job(1, gpu=0.5), job(1, gpu=0.5), job(1, gpu=0.5)], 9, 2),
        ([job(ports=6) for _ in range(3)], 9, 3),
        ([job(0) for _ in range(21)], 9, 3),
        ([job(3), job(2), job(1), job(2)], 9, 2),
        ([job(2, tasks=3)], 9, 0),
        ([job(2, tasks=3, gang=Gang.SPREAD)], 9, 2),
        ([job(system="vm")], 9, 0),
        ([job(system="cml")], 9, 1),
        ([job(labels=(("zone", "a"),))], 9, 0),
    ],
    ids=[
        "no jobs",
        "one",
        "two in each",
        "up to the limit",
        "a limit of zero",
        "a job that never fits does not count",
        "only a job that never fits",
        "too much memory",
        "by GPUs",
        "by ports",
        "by leases",
        "gaps are filled",
        "a gang that stays together",
        "a gang that spreads",
        "another system",
        "the same system",
        "labels a new slot does not have",
    ],
)
def test_the_number_of_needed_slots_is_computed(jobs, limit, needed):
    assert slots_needed(jobs, (), [SlotSupply(SLOT, 99)], limit) == (0, [SLOT] * needed)


SPOT = replace(SLOT, name="spot", spot=True)
RACK = replace(SLOT, name="rack", labels={"rack": "b"})
NON_PREEMPTIBLE, PREEMPTIBLE = job(4), job(4, preemptible=True)
IN_RACK = job(4, labels=(("rack", "b"),))


@pytest.mark.parametrize(
    ("jobs", "incoming", "new", "limit", "claimed", "expected"),
    [
        ([NON_PREEMPTIBLE, NON_PREEMPTIBLE], [(SLOT, 1)], [(SLOT, 9)], 9, 1, ["new"]),
        ([NON_PREEMPTIBLE], [(SLOT, 3)], [(SLOT, 9)], 9, 1, []),
        ([NON_PREEMPTIBLE], [(replace(SLOT, capacity=units(100)), 3)], [(SLOT, 9)], 9, 0, ["new"]),
        ([NON_PREEMPTIBLE], [(SPOT, 3)], [(SPOT, 9), (SLOT, 9)], 9, 0, ["new"]),
        ([PREEMPTIBLE], [(SPOT, 3)], [(SPOT, 9), (SLOT, 9)], 9, 1, []),
        ([PREEMPTIBLE], [], [(SPOT, 9), (SLOT, 9)], 9, 0, ["spot"]),
        ([PREEMPTIBLE, NON_PREEMPTIBLE], [], [(SPOT, 9), (SLOT, 9)], 9, 0, ["new", "spot"]),
        ([PREEMPTIBLE, NON_PREEMPTIBLE], [(SLOT, 1), (SPOT, 1)], [(SPOT, 9), (SLOT, 9)], 9, 2, []),
        ([job(1, preemptible=True), job(1)], [], [(SPOT, 9), (SLOT, 9)], 9, 0, ["new"]),
        ([PREEMPTIBLE, NON_PREEMPTIBLE], [], [(SPOT, 9), (SLOT, 9)], 1, 0, ["new"]),
        ([NON_PREEMPTIBLE], [], [(SPOT, 9)], 9, 0, []),
        ([NON_PREEMPTIBLE, replace(IN_RACK, priority=90)], [], [(SLOT, 9), (RACK, 9)], 1, 0, ["rack"]),
        ([replace(NON_PREEMPTIBLE, priority=90), IN_RACK], [], [(SLOT, 9), (RACK, 9)], 1, 0, ["new"]),
        ([NON_PREEMPTIBLE, IN_RACK], [], [(SLOT, 9), (RACK, 9)], 9, 0, ["rack", "new"]),
        ([NON_PREEMPTIBLE, IN_RACK], [(RACK, 1), (SLOT, 1)], [(SLOT, 9), (RACK, 9)], 9, 2, []),
        ([IN_RACK, IN_RACK], [], [(SLOT, 9), (RACK, 1)], 9, 0, ["rack"]),
        ([NON_PREEMPTIBLE, NON_PREEMPTIBLE], [], [(SLOT, 1), (RACK, 9)], 9, 0, ["new", "rack"]),
        ([IN_RACK], [(SLOT, 5)], [], 0, 0, []),
    ],
    ids=[
        "in addition to an incoming slot",
        "enough incoming slots",
        "incoming slots that are too small",
        "incoming spot slots do not count for non-preemptible jobs",
        "incoming spot slots count for preemptible jobs",
        "spot first for preemptible jobs",
        "one slot of each market",
        "incoming slots of both markets in any order",
        "a preemptible job shares an on-demand slot",
        "the last place is a slot that both can use",
        "spot only",
        "the last place is for the higher priority",
        "the higher priority is without labels",
        "by labels",
        "labelled slots first, in any order",
        "no more than the supply",
        "slots without labels first",
        "no suitable slot",
    ],
)
def test_the_kinds_of_needed_slots_are_computed(jobs, incoming, new, limit, claimed, expected):
    incoming, new = ([SlotSupply(*each) for each in supplies] for supplies in (incoming, new))
    demand = slots_needed(jobs, incoming, new, limit)
    assert (demand.claimed, [node.name for node in demand.new]) == (claimed, expected)


EVERY_JOB = [
    job(cpu, priority=priority, preemptible=preemptible, labels=labels)
    for cpu in (1, 2, 4)
    for priority in (10, 90)
    for preemptible in (False, True)
    for labels in ((), (("rack", "b"),), (("rack", "c"),))
]


@given(st.lists(st.sampled_from(EVERY_JOB), max_size=12))
def test_incoming_launches_satisfy_the_demand(jobs):
    racks = [replace(RACK, name=rack, labels={"rack": rack}) for rack in "bc"]
    kinds = [SPOT, SLOT, *racks, *(replace(each, name=f"{each.name}-spot", spot=True) for each in racks)]
    stock = [SlotSupply(node, 99) for node in kinds]
    first = slots_needed(jobs, (), stock, 99)
    incoming = [SlotSupply(node, list(first.new).count(node)) for node in reversed(kinds)]
    assert slots_needed(jobs, incoming, stock, 99) == (len(first.new), [])


def first_fit(sizes: list[int]) -> int:
    """Return the number of slots that an exhaustive search needs."""
    slots: list[list[int]] = []
    for size in sizes:
        slot = next((slot for slot in slots if sum(slot) + size <= 400 and len(slot) < 10), None)
        if slot is None:
            slots.append([size])
        else:
            slot.append(size)
    return len(slots)


@given(st.lists(st.sampled_from([50, 100, 150, 200, 300, 400]), max_size=25))
def test_the_search_with_a_pointer_matches_an_exhaustive_search(sizes):
    jobs = [Job(f"j{number}", "lab", (Task("t", units(size)),)) for number, size in enumerate(sizes)]
    assert len(slots_needed(jobs, (), [SlotSupply(SLOT, 99)], 99).new) == first_fit(sizes)
