"""Properties of every cycle, over random fleets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.placement.framework.amounts import total
from scheduling.placement.framework.cycle import Cycle, VerdictOutcome, run_cycle
from scheduling.placement.framework.model import Gang, Job, JobPart, Node, Snapshot, Task
from scheduling.placement.framework.results import as_result
from scheduling.placement.framework.snapshot_json import read_snapshot, write_snapshot
from tests.scheduling.placement.random_snapshots import (
    BINPACKING,
    CONFIGURATIONS,
    EVICTING,
    busy_snapshots,
    nodes,
    requests,
    snapshots,
)
from tests.scheduling.placement.scenario import apply_decisions, copy_of

many_examples = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
few_examples = settings(many_examples, max_examples=30)


def parts_on_node(node: Node, snapshot: Snapshot, cycle: Cycle) -> list[JobPart]:
    """Return the parts on a node after the cycle: of running and newly placed jobs."""
    placed = [part for verdict in cycle.placed for part in verdict.parts]
    running = [part for job in snapshot.running for part in job.parts]
    return [part for part in (*running, *placed) if part.node == node.key]


@many_examples
@given(busy_snapshots(), CONFIGURATIONS)
def test_no_slot_exceeds_its_capacity(snapshot, configuration):
    cycle = run_cycle(snapshot, configuration)
    for node in snapshot.nodes:
        parts = parts_on_node(node, snapshot, cycle)
        if not parts:
            continue
        held = total([node.taken, *(task.request for part in parts for task in part.tasks)])
        assert all(used <= limit for used, limit in zip(held, node.capacity, strict=True))
        assert node.taken_leases + len(parts) <= node.max_leases
        ports = sum(task.ports for part in parts for task in part.tasks)
        assert not ports or node.leaked + ports <= node.ports
        devices = Counter(dict(node.taken_devices))
        for part in parts:
            devices.update(dict(part.devices))
        assert all(held <= node.gpus()[place] for place, held in devices.items())


@many_examples
@given(busy_snapshots(), CONFIGURATIONS)
def test_no_job_is_partially_placed(snapshot, configuration):
    cycle = run_cycle(snapshot, configuration)
    assert Counter(verdict.job.id for verdict in cycle.verdicts) == Counter(
        job.id for job in snapshot.waiting
    )
    for verdict in cycle.verdicts:
        job, tasks = verdict.job, [task for part in verdict.parts for task in part.tasks]
        if verdict.outcome is VerdictOutcome.PLACED:
            together = job.gang is Gang.TOGETHER or len(job.tasks) == 1
            assert Counter(tasks) == Counter([job.whole] if together else job.tasks)
            gpus = sum(amount for part in verdict.parts for _, amount in part.devices)
            assert gpus == job.request[3]
            assert len({part.node for part in verdict.parts}) == len(verdict.parts)
        elif verdict.outcome is not VerdictOutcome.HELD:
            assert not tasks


@many_examples
@given(busy_snapshots())
def test_only_preemptible_jobs_that_are_not_leaving_are_evicted(snapshot):
    cycle = run_cycle(snapshot, EVICTING)
    assert all(each.victim.preemptible and not each.victim.leaving for each in cycle.evictions)
    assert len({each.victim.id for each in cycle.evictions}) == len(cycle.evictions)
    held = {verdict.job.id for verdict in cycle.verdicts if verdict.outcome is VerdictOutcome.HELD}
    assert {each.for_job.id for each in cycle.evictions} <= held


@few_examples
@given(busy_snapshots(), CONFIGURATIONS)
def test_repeated_cycles_change_nothing(snapshot, configuration):
    cycle = run_cycle(snapshot, configuration)
    held = {verdict.job.id for verdict in cycle.verdicts if verdict.outcome is VerdictOutcome.HELD}
    for _ in range(2):
        snapshot = apply_decisions(snapshot, cycle)
        cycle = run_cycle(snapshot, configuration)
        assert not cycle.placed
        assert not cycle.evictions
        assert {
            verdict.job.id for verdict in cycle.verdicts if verdict.outcome is VerdictOutcome.HELD
        } == held


@few_examples
@given(busy_snapshots(), CONFIGURATIONS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(snapshot, configuration, random):
    again = copy_of(snapshot)
    rows, slots, queues = list(again.jobs), list(again.nodes), list(again.queues.items())
    for each in (rows, slots, queues):
        random.shuffle(each)
    shuffled = replace(again, jobs=rows, nodes=slots, queues=dict(queues))
    assert as_result(run_cycle(shuffled, configuration)) == as_result(run_cycle(snapshot, configuration))


@few_examples
@given(snapshots(max_jobs=0), requests, st.integers(0, 3), st.integers(1, 12), nodes(50), CONFIGURATIONS)
def test_an_additional_slot_never_reduces_placements(
    snapshot, request, ports, count, extra_node, configuration
):
    allocating = replace(configuration, actions=("allocate",))
    jobs = [
        Job(id=f"j{number}", queue="north/b", tasks=(Task("t", request, ports),), preemptible=True)
        for number in range(count)
    ]
    before = run_cycle(replace(snapshot, jobs=jobs), allocating)
    after = run_cycle(replace(snapshot, jobs=jobs, nodes=[*snapshot.nodes, extra_node]), allocating)
    assert len(after.placed) >= len(before.placed)


@few_examples
@given(busy_snapshots())
def test_a_snapshot_survives_a_round_trip(snapshot):
    again = read_snapshot(write_snapshot(snapshot))
    assert write_snapshot(again) == write_snapshot(snapshot)
    assert as_result(run_cycle(again, BINPACKING)) == as_result(run_cycle(snapshot, BINPACKING))
    assert (again.now, again.nodes, again.queues, again.templates, again.pool) == (
        snapshot.now, snapshot.nodes, snapshot.queues, snapshot.templates, snapshot.pool,
    )  # fmt: skip
    assert [_values(job) for job in again.jobs] == [_values(job) for job in snapshot.jobs]


def _values(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in Job.__slots__}
