"""Every built-in plugin gives equal results in all its forms, within bounds; an undo restores the state."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.placement.framework.cycle import run_cycle
from scheduling.placement.framework.explanation import reasons_on
from scheduling.placement.framework.model import Snapshot
from scheduling.placement.framework.nodes import Nodes
from scheduling.placement.framework.plugin_calls import call_predicate, call_score, states
from scheduling.placement.framework.session import SchedulingSession
from tests.scheduling.placement.inline_plugins import BUILT_IN
from tests.scheduling.placement.random_snapshots import (
    BINPACKING,
    EVICTING,
    busy_snapshots,
    configuration_of_plugin,
    nodes_of_one_size,
)

few_examples = settings(
    max_examples=9, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "binpack": [{}, {"storage_gb": 3, "gpu": 2, "weight": 5}, {"cpu_cores": 0, "memory_gb": 0}],
    "spread": [{}, {"storage_gb": 3, "gpu": 2, "weight": 5}],
    "timeslot": [{}, {"lead_minutes": 0}],
    "quota": [{}, {"limits": {"north": {"cpu_cores": 2, "sessions": 1}}}],
    "fairshare": [{}, {"charge": 0}, {"charge": 100}],
}
CASES = [(name, arguments) for name in BUILT_IN for arguments in ARGUMENTS.get(name, [{}])]
SCORING = [case for case in CASES if case[0] in ("binpack", "spread", "spot", "gpupack", "gpuspread")]
each_plugin = pytest.mark.parametrize(("name", "arguments"), CASES, ids=lambda value: str(value))


def session_with_plugin(snapshot: Snapshot, name: str, arguments: dict[str, Any]) -> SchedulingSession:
    """Return a session with one plugin in which some jobs are already placed."""
    ssn = SchedulingSession(snapshot)
    ssn.open(configuration_of_plugin(name, **arguments).plugins())
    # Place the jobs that a cycle with all plugins would place.
    for verdict in run_cycle(snapshot, BINPACKING).placed[:3]:
        for part in verdict.parts:
            ssn.change(verdict.job, part, 1, taking=True)
    return ssn


def node_subsets(ssn: SchedulingSession) -> list[Nodes]:
    """Return all nodes, and every second node."""
    return [Nodes(ssn.nodes), Nodes(ssn.nodes, np.arange(0, len(ssn.nodes), 2))]


def task_job_pairs(snapshot: Snapshot):
    return [(task, job) for job in snapshot.jobs for task in (*job.tasks, job.whole)]


@each_plugin
@few_examples
@given(snapshot=busy_snapshots(max_nodes=5, max_jobs=6))
def test_batch_and_scalar_give_the_same_result(name, arguments, snapshot):
    ssn = session_with_plugin(snapshot, name, arguments)
    for (task, job), nodes in product(task_job_pairs(snapshot), node_subsets(ssn)):
        for fn in ssn.predicates:
            one_by_one = [fn.scalar(task, job, state) is None for state in states(nodes)]
            assert call_predicate(ssn, fn, task, job, nodes).tolist() == one_by_one
        for fn in ssn.scores:
            weighted = [fn.scalar(task, job, state) * fn.weight for state in states(nodes)]
            values = call_score(ssn, fn, task, job, nodes, shared=True)
            assert values == pytest.approx(weighted, rel=1e-9, abs=1e-9)
            # Compare incremental results with results for all nodes.
            assert fn.ranks_by is None or values.tolist() == weighted
    assert ssn.failures.by_plugin == {}


@pytest.mark.parametrize(("name", "arguments"), SCORING, ids=lambda value: str(value))
@few_examples
@given(snapshot=busy_snapshots(max_nodes=5, max_jobs=6, slots=nodes_of_one_size(2)))
def test_scores_of_tasks_with_one_ranking_key_differ_by_a_constant(name, arguments, snapshot):
    ssn = session_with_plugin(snapshot, name, arguments)
    all_nodes = Nodes(ssn.nodes)
    changing = [fn for fn in ssn.scores if not fn.fixed]
    assert all(fn.ranks_by for fn in changing)
    for fn, (task, job), (other, other_job) in product(
        changing, task_job_pairs(snapshot), task_job_pairs(snapshot)
    ):
        if fn.ranks_by(task) == fn.ranks_by(other):
            difference = call_score(ssn, fn, task, job, all_nodes, shared=True)
            difference = difference - call_score(ssn, fn, other, other_job, all_nodes, shared=True)
            assert difference == pytest.approx(difference[:1].repeat(len(difference)), abs=1e-9)


@pytest.mark.parametrize(("name", "arguments"), SCORING, ids=lambda value: str(value))
@few_examples
@given(snapshot=busy_snapshots(max_nodes=5, max_jobs=6))
def test_scores_lie_between_0_and_1_where_the_task_fits(name, arguments, snapshot):
    ssn = session_with_plugin(snapshot, name, arguments)
    resources_session = SchedulingSession(snapshot)
    resources_session.open(configuration_of_plugin("resources").plugins())
    resources_session.nodes = ssn.nodes
    all_nodes = Nodes(ssn.nodes)
    for task, job in task_job_pairs(snapshot):
        fits = np.logical_and.reduce(
            [
                all_nodes.all(True),
                *(
                    call_predicate(resources_session, fn, task, job, all_nodes)
                    for fn in resources_session.predicates
                ),
            ]
        )
        for fn in ssn.scores:
            values = call_score(ssn, fn, task, job, all_nodes)[fits] / fn.weight
            assert ((values >= -1e-9) & (values <= 1 + 1e-9)).all()


@few_examples
@given(busy_snapshots())
def test_a_node_has_reasons_exactly_when_it_is_refused(snapshot):
    ssn = SchedulingSession(snapshot)
    ssn.open(BINPACKING.plugins())
    for task, job in task_job_pairs(snapshot):
        candidates = ssn.candidates(task, job)
        for number in range(len(ssn.nodes)):
            assert bool(reasons_on(ssn, task, job, number)) != candidates.allows(number)


@settings(few_examples, max_examples=30)
@given(busy_snapshots(max_jobs=7), st.data())
def test_discarding_restores_the_session_exactly(snapshot, data):
    ssn = SchedulingSession(snapshot)
    ssn.open(EVICTING.plugins())
    first, second = ssn.statement(), ssn.statement()
    _run_operations(ssn, snapshot, first, data)
    before = _session_state(ssn, snapshot)
    _run_operations(ssn, snapshot, second, data)
    second.discard()
    assert _session_state(ssn, snapshot) == before
    fresh = SchedulingSession(snapshot)
    fresh.open(EVICTING.plugins())
    first.discard()
    assert _session_state(ssn, snapshot) == _session_state(fresh, snapshot)


def _run_operations(ssn, snapshot, statement, data) -> None:
    running = {id(job) for job in snapshot.running}
    gone = {id(operation.job) for operation in statement.operations}
    for job in data.draw(st.permutations(snapshot.jobs)) if snapshot.jobs else ():
        if id(job) in gone:
            continue
        if id(job) in running:
            statement.evict(job)
        elif (number := ssn.candidates(job.whole, job).best()) is not None:
            statement.allocate(job, ssn.part_on(job.whole, number))


def _session_state(ssn: SchedulingSession, snapshot: Snapshot) -> tuple[Any, ...]:
    """Everything that results depend on: the nodes, and each plugin's results for them."""
    all_nodes = Nodes(ssn.nodes)
    scores = [
        call_score(ssn, fn, *pair, all_nodes).tolist()
        for fn in ssn.scores
        for pair in task_job_pairs(snapshot)
    ]
    order = next(order for order in ssn.orders if order.kind == "queue")
    return (
        ssn.nodes.levels.tolist(),
        ssn.nodes.free_devices.tolist(),
        scores,
        [order.key(queue) for queue in snapshot.queues.values()],
        [ssn.refused(job) for job in snapshot.jobs],
        [ssn.candidates(job.whole, job).best() for job in snapshot.jobs],
        [len(ssn.victims(job, ssn.reclaimable, list(snapshot.running))) for job in snapshot.waiting],
    )
