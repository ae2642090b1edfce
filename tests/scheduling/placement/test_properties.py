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
    CONFIGURATIONS,
    PACKED,
    RUTHLESS,
    busy_snapshots,
    nodes,
    requests,
    snapshots,
)
from tests.scheduling.placement.scenario import applied, copied

many = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
few = settings(many, max_examples=30)


def on_node(node: Node, snapshot: Snapshot, cycle: Cycle) -> list[JobPart]:
    """The jobs on a node after the cycle: running and newly placed ones."""
    placed = [part for verdict in cycle.placed for part in verdict.parts]
    running = [part for job in snapshot.running for part in job.parts]
    return [part for part in (*running, *placed) if part.node == node.key]


@many
@given(busy_snapshots(), CONFIGURATIONS)
def test_no_slot_gets_more_than_it_has(snapshot, configuration):
    cycle = run_cycle(snapshot, configuration)
    for node in snapshot.nodes:
        parts = on_node(node, snapshot, cycle)
        if not parts:
            continue
        held = total([node.taken, *(task.request for part in parts for task in part.tasks)])
        assert all(used <= there for used, there in zip(held, node.capacity, strict=True))
        assert node.taken_leases + len(parts) <= node.max_leases
        ports = sum(task.ports for part in parts for task in part.tasks)
        assert not ports or node.leaked + ports <= node.ports
        devices = Counter(dict(node.taken_devices))
        for part in parts:
            devices.update(dict(part.devices))
        assert all(held <= node.gpus()[place] for place, held in devices.items())


@many
@given(busy_snapshots(), CONFIGURATIONS)
def test_no_job_is_half_placed(snapshot, configuration):
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


@many
@given(busy_snapshots())
def test_only_preemptible_jobs_that_are_not_leaving_have_to_stop(snapshot):
    cycle = run_cycle(snapshot, RUTHLESS)
    assert all(each.victim.preemptible and not each.victim.leaving for each in cycle.evictions)
    assert len({each.victim.id for each in cycle.evictions}) == len(cycle.evictions)
    held = {verdict.job.id for verdict in cycle.verdicts if verdict.outcome is VerdictOutcome.HELD}
    assert {each.for_job.id for each in cycle.evictions} <= held


@few
@given(busy_snapshots(), CONFIGURATIONS)
def test_quiet_cycles_change_nothing(snapshot, configuration):
    cycle = run_cycle(snapshot, configuration)
    held = {verdict.job.id for verdict in cycle.verdicts if verdict.outcome is VerdictOutcome.HELD}
    for _ in range(2):
        snapshot = applied(snapshot, cycle)
        cycle = run_cycle(snapshot, configuration)
        assert not cycle.placed
        assert not cycle.evictions
        assert {
            verdict.job.id for verdict in cycle.verdicts if verdict.outcome is VerdictOutcome.HELD
        } == held


@few
@given(busy_snapshots(), CONFIGURATIONS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(snapshot, configuration, random):
    again = copied(snapshot)
    rows, slots, queues = list(again.jobs), list(again.nodes), list(again.queues.items())
    for each in (rows, slots, queues):
        random.shuffle(each)
    shuffled = replace(again, jobs=rows, nodes=slots, queues=dict(queues))
    assert as_result(run_cycle(shuffled, configuration)) == as_result(run_cycle(snapshot, configuration))


@few
@given(snapshots(max_jobs=0), requests, st.integers(0, 3), st.integers(1, 12), nodes(50), CONFIGURATIONS)
def test_one_slot_more_never_makes_fewer_fit(snapshot, request, ports, count, more, configuration):
    allocating = replace(configuration, actions=("allocate",))
    jobs = [
        Job(id=f"j{number}", queue="north/b", tasks=(Task("t", request, ports),), preemptible=True)
        for number in range(count)
    ]
    before = run_cycle(replace(snapshot, jobs=jobs), allocating)
    after = run_cycle(replace(snapshot, jobs=jobs, nodes=[*snapshot.nodes, more]), allocating)
    assert len(after.placed) >= len(before.placed)


@few
@given(busy_snapshots())
def test_a_document_is_the_snapshot(snapshot):
    again = read_snapshot(write_snapshot(snapshot))
    assert write_snapshot(again) == write_snapshot(snapshot)
    assert as_result(run_cycle(again, PACKED)) == as_result(run_cycle(snapshot, PACKED))
    assert (again.now, again.nodes, again.queues, again.templates, again.pool) == (
        snapshot.now, snapshot.nodes, snapshot.queues, snapshot.templates, snapshot.pool,
    )  # fmt: skip
    assert [_values(job) for job in again.jobs] == [_values(job) for job in snapshot.jobs]


def _values(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in Job.__slots__}
