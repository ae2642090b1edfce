"""Which claim goes where: a table, and the pointer trick against a search that looks everywhere."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.capacity import Resources
from scheduling.placement import Claim, Plan, Room, in_order, place, slots_needed
from tests.scheduling.fakes import START

LOW, NORMAL, HIGH = 10, 50, 90


def claim(number, cpu=1, *, memory=0, storage=0, gpu=0, ports=0, priority=NORMAL, age=0) -> Claim:
    asked = Resources(Decimal(cpu), Decimal(memory), Decimal(storage), Decimal(gpu))
    return Claim(UUID(int=number), asked, ports, priority, START - timedelta(seconds=age))


def room(number, cpu=4, *, memory=8, storage=8, gpu=1, leases=10, ports=10) -> Room:
    free = Resources(Decimal(cpu), Decimal(memory), Decimal(storage), Decimal(gpu))
    return Room(UUID(int=number), free, leases, ports)


def numbers(plan: Plan) -> dict[int, int]:
    return {key.int: value.int for key, value in plan.placed.items()}


@pytest.mark.parametrize(
    ("claims", "order"),
    [
        ([claim(1, priority=LOW), claim(2, priority=HIGH), claim(3)], [2, 3, 1]),
        ([claim(1, age=5), claim(2, age=50), claim(3)], [2, 1, 3]),
        ([claim(3), claim(1), claim(2)], [1, 2, 3]),
        ([claim(1, age=99, priority=LOW), claim(2, priority=NORMAL)], [2, 1]),
        ([], []),
    ],
    ids=["priority", "age", "id", "priority before age", "nothing"],
)
def test_claims_stand_in_line_by_priority_then_age_then_id(claims, order):
    assert [each.id.int for each in in_order(claims)] == order


@pytest.mark.parametrize(
    ("claims", "rooms", "placed", "unmet"),
    [
        ([claim(1)], [room(1), room(2)], {1: 1}, []),
        ([claim(1, 3), claim(2, 3)], [room(1), room(2)], {1: 1, 2: 2}, []),
        ([claim(1, 4), claim(2, 1)], [room(1)], {1: 1}, [2]),
        ([claim(1, 1, memory=9)], [room(1), room(2, memory=9)], {1: 2}, []),
        ([claim(1, 1, storage=9)], [room(1), room(2, storage=9)], {1: 2}, []),
        ([claim(1, 1, gpu=2)], [room(1), room(2, gpu=2)], {1: 2}, []),
        ([claim(1), claim(2)], [room(1, leases=1), room(2)], {1: 1, 2: 2}, []),
        ([claim(1), claim(2)], [room(1, leases=1)], {1: 1}, [2]),
        ([claim(1)], [room(1, leases=0)], {}, [1]),
        ([claim(1, ports=3)], [room(1, ports=2), room(2, ports=3)], {1: 2}, []),
        ([claim(1, ports=3)], [room(1, ports=2)], {}, [1]),
        ([claim(1, 4), claim(2, 4, priority=HIGH)], [room(1)], {2: 1}, [1]),
        ([claim(1, 9), claim(2, 1)], [room(1)], {2: 1}, [1]),
        ([claim(1)], [], {}, [1]),
        ([], [room(1)], {}, []),
    ],
    ids=[
        "the first room",
        "the next when the first is full",
        "CPU to the last core",
        "memory",
        "storage",
        "GPUs",
        "a lease each",
        "no lease left",
        "no lease at all",
        "ports",
        "too few ports",
        "priority wins the last place",
        "what never fits blocks nobody",
        "no rooms",
        "no claims",
    ],
)
def test_placing_takes_the_first_room_with_enough_of_everything(claims, rooms, placed, unmet):
    plan = place(claims, rooms)
    assert numbers(plan) == placed
    assert [each.id.int for each in plan.unmet] == unmet


def test_placing_takes_from_the_room():
    only = room(1)
    place([claim(1, 3, memory=2, storage=1, gpu=1, ports=4)], [only])
    assert only == room(1, 1, memory=6, storage=7, gpu=0, leases=9, ports=6)


@pytest.mark.parametrize(
    ("claims", "limit", "needed"),
    [
        ([], 9, 0),
        ([claim(1)], 9, 1),
        ([claim(number, 2) for number in range(5)], 9, 3),
        ([claim(number, 2) for number in range(5)], 2, 2),
        ([claim(number, 2) for number in range(5)], 0, 0),
        ([claim(1, 5), claim(2, 1)], 9, 1),
        ([claim(1, 5)], 9, 0),
        ([claim(number, ports=6) for number in range(3)], 9, 3),
        ([claim(number, 0) for number in range(21)], 9, 3),
        ([claim(1, 3), claim(2, 2), claim(3, 1), claim(4, 2)], 9, 2),
    ],
    ids=[
        "nothing",
        "one",
        "two in each",
        "up to the limit",
        "a limit of none",
        "what never fits counts nothing",
        "only what never fits",
        "by ports",
        "by leases",
        "gaps are filled",
    ],
)
def test_slots_needed(claims, limit, needed):
    assert slots_needed(claims, room(0), limit) == needed


amounts = st.integers(0, 5)
claim_lists = st.lists(
    st.builds(
        lambda cpu, memory, ports, priority, age: (cpu, memory, ports, priority, age),
        amounts,
        amounts,
        st.integers(0, 3),
        st.sampled_from([LOW, NORMAL, HIGH]),
        st.integers(0, 3),
    ),
    max_size=25,
).map(
    lambda rows: [
        claim(number, cpu, memory=memory, ports=ports, priority=priority, age=age)
        for number, (cpu, memory, ports, priority, age) in enumerate(rows)
    ]
)
room_lists = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4), st.integers(0, 6)), max_size=8
).map(
    lambda rows: [
        room(number, cpu, memory=memory, leases=leases, ports=ports)
        for number, (cpu, memory, leases, ports) in enumerate(rows)
    ]
)


def first_fit(claims: list[Claim], rooms: list[Room]) -> Plan:
    """Looks at every room for every claim."""
    plan = Plan()
    for each in in_order(claims):
        found = next((one for one in rooms if one.takes(each)), None)
        if found is None:
            plan.unmet.append(each)
        else:
            found.take(each)
            plan.placed[each.id] = found.id
    return plan


@given(claim_lists, room_lists)
def test_pointers_place_exactly_like_a_search_from_the_start(claims, rooms):
    naive, quick = deepcopy(rooms), deepcopy(rooms)
    assert place(claims, quick) == first_fit(claims, naive)
    assert quick == naive


@given(claim_lists, room_lists)
def test_no_room_gives_more_than_it_has_and_every_claim_is_placed_or_unmet_once(claims, rooms):
    plan = place(claims, rooms)
    assert all(each.leases >= 0 and each.ports >= 0 for each in rooms)
    assert all(min(vars(each.free).values()) >= 0 for each in rooms)
    assert sorted([*plan.placed, *(each.id for each in plan.unmet)]) == [each.id for each in claims]


@given(claim_lists, st.integers(0, 30))
def test_the_slots_needed_are_enough_and_within_the_limit(claims, limit):
    empty = room(99, 6, memory=6, leases=3, ports=4)
    needed = slots_needed(claims, empty, limit)
    assert needed <= limit
    rooms = [Room(UUID(int=index), empty.free, empty.leases, empty.ports) for index in range(needed)]
    unmet = place(claims, rooms).unmet
    if needed < limit:
        assert not [each for each in unmet if empty.takes(each)]
    assert all(one.leases < empty.leases for one in rooms)


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        (Resources(), []),
        (Resources(Decimal(2)), ["CPU"]),
        (Resources(Decimal(2), Decimal(2), Decimal(2), Decimal(2)), ["CPU", "memory", "storage", "GPUs"]),
        (Resources(Decimal(1), Decimal(1), Decimal(1), Decimal(1)), []),
    ],
)
def test_what_is_lacking_is_named(asked, lacking):
    have = Resources(Decimal(1), Decimal(1), Decimal(1), Decimal(1))
    assert asked.lacking_in(have) == lacking
    assert asked.fits_in(have) == (not lacking)


def test_amounts_add_up_and_are_taken_away():
    one, two = Resources(Decimal(1), Decimal(2)), Resources(Decimal(3), Decimal(4), Decimal(5), Decimal(6))
    assert one + two - one == two
