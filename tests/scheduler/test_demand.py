"""How many new slots would help."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.framework.amounts import amounts_of
from scheduling.framework.demand import slots_needed
from scheduling.framework.model import Gang, Job, Node, Task

numbers = count()


def job(cpu=1, *, ports=0, gang=Gang.TOGETHER, tasks=1, **more) -> Job:
    each = amounts_of(
        {"cpu_cores": cpu, **{key: more.pop(key) for key in ("memory_gb", "gpu") if key in more}}
    )
    kernels = tuple(Task(f"k{place}", each, ports) for place in range(tasks))
    return Job(f"j{next(numbers)}", "lab", kernels, gang=gang, **more)


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
        "nothing",
        "one",
        "two in each",
        "up to the limit",
        "a limit of none",
        "what never fits counts nothing",
        "only what never fits",
        "too much memory",
        "by GPUs",
        "by ports",
        "by leases",
        "gaps are filled",
        "a gang that stays together",
        "a gang that spreads",
        "another system",
        "its system",
        "labels a new slot does not have",
    ],
)
def test_slots_needed(jobs, limit, needed):
    assert slots_needed(jobs, SLOT, limit) == needed


def first_fit(sizes: list[int]) -> int:
    """A search that looks everywhere, to compare with the one that remembers where it was."""
    rooms: list[list[int]] = []
    for size in sizes:
        room = next((room for room in rooms if sum(room) + size <= 400 and len(room) < 10), None)
        if room is None:
            rooms.append([size])
        else:
            room.append(size)
    return len(rooms)


@given(st.lists(st.sampled_from([50, 100, 150, 200, 300, 400]), max_size=25))
def test_looking_where_it_was_finds_what_looking_everywhere_finds(sizes):
    jobs = [Job(f"j{number}", "lab", (Task("t", (size, 0, 0, 0)),)) for number, size in enumerate(sizes)]
    assert slots_needed(jobs, SLOT, 99) == first_fit(sizes)
