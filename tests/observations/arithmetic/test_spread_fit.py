"""The bound for sessions with spread kernels is never below what can be placed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observations.arithmetic.impact import LEASES, Packing, SessionDemand, WorkerSpace, combine_packings
from observations.arithmetic.measures import CPU, MEMORY
from observations.arithmetic.spread_fit import pack_spread


def need(*kernels):
    """Kernels as (cores, GB, ports)."""
    each = [SessionDemand({CPU: cpu, MEMORY: memory}, ports) for cpu, memory, ports in kernels]
    whole = {name: sum(kernel.amounts[name] for kernel in each) for name in (CPU, MEMORY)}
    return SessionDemand(whole, sum(kernel.ports for kernel in each), each)


def worker(cpu, memory=1000, ports=100, leases=10):
    return WorkerSpace({CPU: cpu, MEMORY: memory}, ports, leases)


LAB = need((2, 2, 1), (1, 1, 0), (1, 1, 0))


@pytest.mark.parametrize(
    ("demand", "workers", "sessions", "bound"),
    [
        (LAB, [worker(3), worker(3)], 1, CPU),  # no worker holds it, both together do: 6 ÷ 4
        (LAB, [worker(4)] * 3, 3, CPU),
        (LAB, [worker(3, 2), worker(3, 2)], 1, CPU),  # memory also 4 ÷ 4: the first by name
        (LAB, [worker(30, 3), worker(30, 3)], 1, MEMORY),
        (LAB, [worker(30, ports=2), worker(30, ports=0)], 2, "ports"),
        (LAB, [worker(30, leases=2), worker(30, leases=1)], 3, LEASES),
        (LAB, [worker(2, leases=2), worker(2, leases=2)], 1, CPU),  # four leases, two for each session
        (LAB, [worker(8), worker(1)], 2, CPU),
        (LAB, [worker(9, leases=0), worker(3)], 0, CPU),  # a worker without a free lease has no capacity
        (need((3, 1, 0), (1, 1, 0)), [worker(2)] * 9, 0, CPU),  # 18 cores, but no place for three at once
        (need((6, 0, 0), (2, 0, 0)), [worker(5)] * 8 + [worker(6)], 1, CPU),  # one place for the large one
        (need((2, 9, 0), (2, 1, 0)), [worker(50, 8)] * 9 + [worker(2, 9)] * 2, 2, MEMORY),
        (need((4, 8, 0), (1, 1, 0)), [worker(8, 4), worker(2, 16)], 0, CPU),  # no worker has enough of both
        (LAB, [], 0, "nothing"),
    ],
)
def test_spread_sessions_that_fit_are_counted(demand, workers, sessions, bound):
    found = pack_spread(demand, workers)
    assert (found.sessions, found.workers, found.limited_by) == (sessions, len(workers), bound)
    assert found.is_bound


def test_each_limit_is_reported():
    found = pack_spread(LAB, [worker(9, 6, leases=2), worker(9, 6, leases=2)])
    assert found.by_limit == {CPU: 4, MEMORY: 3, "ports": 200, LEASES: 4}


def test_packings_of_several_pools_are_summed():
    packings = [pack_spread(LAB, [worker(3)]), pack_spread(LAB, [worker(3)])]
    assert combine_packings(packings).sessions == 0  # a session cannot span two pools
    assert combine_packings(
        [Packing(2, 1, CPU, {CPU: 2}), Packing(3, 4, LEASES, {CPU: 5, LEASES: 3})]
    ) == Packing(5, 5, LEASES, {CPU: 7, LEASES: 3})


def placed_one_by_one(demand, workers):
    """Return the sessions placed by a first-fit scheduler, largest kernels first."""
    left = [[room.amounts[CPU], room.amounts[MEMORY], room.ports, room.leases] for room in workers]
    kernels = [[*kernel.amounts.values(), kernel.ports] for kernel in demand.kernels]
    kernels.sort(reverse=True)
    count = 0
    while True:
        rest, used = [list(room) for room in left], set()
        for kernel in kernels:
            place = next((n for n, room in enumerate(rest) if has_room(kernel, room, n in used)), None)
            if place is None:
                return count
            used.add(place)
            rest[place][:3] = [have - take for have, take in zip(rest[place], kernel, strict=False)]
        for place in used:
            rest[place][3] -= 1
        left, count = rest, count + 1


def has_room(kernel, room, is_there):
    return all(take <= have for take, have in zip(kernel, room, strict=False)) and (is_there or room[3] > 0)


small = st.integers(0, 6)
kernels_of_a_lab = st.lists(st.tuples(st.integers(1, 6), small, st.integers(0, 2)), min_size=1, max_size=5)
fleets = st.lists(
    st.builds(worker, st.integers(0, 12), st.integers(0, 12), st.integers(0, 6), st.integers(0, 4)),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(kernels_of_a_lab, fleets)
def test_the_placed_sessions_never_exceed_the_bound(kernels, workers):
    demand = need(*kernels)
    assert placed_one_by_one(demand, workers) <= pack_spread(demand, workers).sessions


def test_many_equal_workers_are_filled_except_for_the_remainder():
    workers = [worker(48, 192)] * 200
    bound, placed = pack_spread(LAB, workers).sessions, placed_one_by_one(LAB, workers)
    assert placed == bound == 200 * 10  # leases
    larger = need((8, 16, 1), (4, 8, 1), (2, 4, 0), (2, 4, 0), (1, 1, 0))
    assert placed_one_by_one(larger, workers) == pack_spread(larger, workers).sessions == 564
