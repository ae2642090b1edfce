"""Number of sessions that fit, limiting resource, and risk of a proposal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations.arithmetic.impact import (
    Packing,
    SessionDemand,
    WorkerSpace,
    highest_risk,
    pack,
    risk_of,
    risk_text,
    saved,
)
from observations.arithmetic.measures import CPU, MEMORY, STORAGE

WORKER = WorkerSpace({CPU: 4800, MEMORY: 19200, STORAGE: 90000, "gpu": 0}, ports=300, leases=12)


def need(cpu=600, memory=3200, storage=6000, gpu=0, ports=14):
    return SessionDemand({CPU: cpu, MEMORY: memory, STORAGE: storage, "gpu": gpu}, ports)


@pytest.mark.parametrize(
    ("demand", "sessions", "bound"),
    [
        (need(), 6, MEMORY),  # CPU 8, memory 6, storage 15, ports 21, leases 12
        (need(memory=2400), 8, CPU),  # memory also 8: the first by name
        (need(memory=2000, cpu=450), 9, MEMORY),  # CPU 10, memory 9
        (need(memory=1000, cpu=100), 12, "leases"),
        (need(memory=1000, cpu=100, ports=30), 10, "ports"),
        (need(memory=1000, cpu=100, storage=45000), 2, STORAGE),
        (need(gpu=100), 0, "gpu"),
        (need(cpu=0, memory=0, storage=0, ports=0), 12, "leases"),
    ],
)
def test_packing_names_the_resource_that_limits_it(demand, sessions, bound):
    assert pack(demand, [WORKER]) == Packing(sessions, 1, bound, pack(demand, [WORKER]).by_limit)


def test_each_limit_is_reported():
    limits = {CPU: 8, MEMORY: 6, STORAGE: 15, "ports": 21, "leases": 12}
    assert pack(need(), [WORKER]).by_limit == limits
    assert pack(need(), [WORKER] * 3).by_limit == {name: 3 * limit for name, limit in limits.items()}


def test_packings_are_summed_and_the_most_frequent_limit_is_named():
    small = WorkerSpace({CPU: 600, MEMORY: 64000, STORAGE: 90000, "gpu": 0}, ports=300, leases=12)
    found = pack(need(), [WORKER, WORKER, small])
    assert (found.sessions, found.workers, found.limited_by) == (13, 3, MEMORY)


def test_without_workers_nothing_fits():
    assert pack(need(), []) == Packing(0, 0, "nothing", {})


def test_an_overcommitted_worker_holds_no_session():
    assert pack(need(), [WorkerSpace({CPU: -100, MEMORY: 0, STORAGE: 0, "gpu": 0}, -2, 0)]).sessions == 0


@pytest.mark.parametrize(
    ("n", "bound"),
    [
        (1, 0.95),
        (2, 0.7764),
        (5, 0.4507),
        (10, 0.2589),
        (19, 0.1459),
        (20, 0.1391),
        (22, 0.1273),
        (59, 0.0495),
    ],
)
def test_without_an_exceedance_the_upper_bound_follows_from_the_session_count(n, bound):
    assert risk_of(CPU, 0, n).upper_bound == pytest.approx(bound, abs=1e-4)


@pytest.mark.parametrize(
    ("resource", "exceeding", "n", "level"),
    [
        (MEMORY, 1, 100, "high"),  # exhausting memory stops a lab
        (CPU, 1, 100, "low"),
        (CPU, 4, 100, "medium"),
        (CPU, 6, 100, "high"),
        (CPU, 0, 22, "low"),
        (MEMORY, 0, 5, "medium"),  # upper bound 45 %: five sessions are not enough
        (MEMORY, 0, 0, "unknown"),
    ],
)
def test_a_risk_has_a_level(resource, exceeding, n, level):
    assert risk_of(resource, exceeding, n).level == level


def test_the_highest_risk_counts():
    assert highest_risk([risk_of(CPU, 0, 22), risk_of(MEMORY, 1, 22)]) == "high"
    assert highest_risk([]) == "unknown"


def test_a_risk_is_stated_as_a_sentence():
    assert str(risk_text(risk_of(MEMORY, 2, 42))) == "Memory: 2 of 42 sessions would have run out."
    assert str(risk_text(risk_of(CPU, 2, 42))) == "CPU: 2 of 42 sessions would have been slowed."
    bound = "CPU: 0 of 22 sessions exceeded it (95 % upper bound: 13 %)."
    assert str(risk_text(risk_of(CPU, 0, 22))) == bound
    assert str(risk_text(risk_of(CPU, 0, 0))) == "CPU: not measured by any session."


def test_the_saving_is_the_reduction_times_the_time_held():
    found = saved({CPU: 600, MEMORY: 3200}, {CPU: 450, MEMORY: 2400}, 10 * 3600)
    assert (found.cpu, found.memory) == (1500, 8000)


amounts = st.integers(1, 10_000)


@given(amounts, amounts, st.lists(st.tuples(amounts, amounts, st.integers(0, 20)), max_size=8))
def test_a_lower_requirement_never_fits_fewer_sessions(cpu, less, spaces):
    made = [WorkerSpace({CPU: c, MEMORY: m, STORAGE: 0, "gpu": 0}, 100, leases) for c, m, leases in spaces]
    larger = pack(SessionDemand({CPU: cpu + less, MEMORY: 100, STORAGE: 0, "gpu": 0}, 2), made)
    smaller = pack(SessionDemand({CPU: cpu, MEMORY: 100, STORAGE: 0, "gpu": 0}, 2), made)
    assert smaller.sessions >= larger.sessions
