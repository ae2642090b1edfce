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
from scheduling.placement.framework.plugin import BUILT_IN
from scheduling.placement.framework.plugin_calls import call_predicate, call_score, states
from scheduling.placement.framework.session import SchedulingSession
from tests.scheduling.placement.random_snapshots import (
    PACKED,
    RUTHLESS,
    busy_snapshots,
    nodes_of_one_size,
    of_one_plugin,
)

moderate = settings(
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


class ListeningSession(SchedulingSession):
    """Records both forms of every order."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.pairs: list[tuple[str, Any, Any]] = []

    def add_queue_order_fn(self, compare=None, *, key=None):
        self.pairs.append(("queue", compare, key))
        super().add_queue_order_fn(compare, key=key)

    def add_job_order_fn(self, compare=None, *, key=None):
        self.pairs.append(("job", compare, key))
        super().add_job_order_fn(compare, key=key)


def opened(snapshot: Snapshot, name: str, arguments: dict[str, Any]) -> ListeningSession:
    """A session with one plugin, in the middle of a cycle: some jobs are placed already."""
    ssn = ListeningSession(snapshot)
    ssn.open(of_one_plugin(name, **arguments).plugins())
    # Place the jobs that a cycle with all plugins would place.
    for verdict in run_cycle(snapshot, PACKED).placed[:3]:
        for part in verdict.parts:
            ssn.change(verdict.job, part, 1, taking=True)
    return ssn


def some_nodes(ssn: SchedulingSession) -> list[Nodes]:
    """All nodes, and every second one."""
    return [Nodes(ssn.nodes), Nodes(ssn.nodes, np.arange(0, len(ssn.nodes), 2))]


def asked(snapshot: Snapshot):
    return [(task, job) for job in snapshot.jobs for task in (*job.tasks, job.whole)]


@each_plugin
@moderate
@given(snapshot=busy_snapshots(max_nodes=5, max_jobs=6))
def test_batch_and_scalar_give_the_same_result(name, arguments, snapshot):
    ssn = opened(snapshot, name, arguments)
    for (task, job), nodes in product(asked(snapshot), some_nodes(ssn)):
        for fn in ssn.predicates:
            one_by_one = [fn.scalar(task, job, state) is None for state in states(nodes)]
            assert call_predicate(ssn, fn, task, job, nodes).tolist() == one_by_one
        for fn in ssn.scores:
            weighted = [fn.scalar(task, job, state) * fn.weight for state in states(nodes)]
            found = call_score(ssn, fn, task, job, nodes, shared=True)
            assert found == pytest.approx(weighted, rel=1e-9, abs=1e-9)
            # Compare incremental results with results for all nodes.
            assert fn.ranks_by is None or found.tolist() == weighted
    assert ssn.failures.by_plugin == {}


@pytest.mark.parametrize(("name", "arguments"), SCORING, ids=lambda value: str(value))
@moderate
@given(snapshot=busy_snapshots(max_nodes=5, max_jobs=6, slots=nodes_of_one_size(2)))
def test_scores_of_tasks_that_rank_alike_differ_by_the_same_on_every_slot(name, arguments, snapshot):
    ssn = opened(snapshot, name, arguments)
    every = Nodes(ssn.nodes)
    changing = [fn for fn in ssn.scores if not fn.fixed]
    assert all(fn.ranks_by for fn in changing)
    for fn, (task, job), (other, whose) in product(changing, asked(snapshot), asked(snapshot)):
        if fn.ranks_by(task) == fn.ranks_by(other):
            apart = call_score(ssn, fn, task, job, every, shared=True)
            apart = apart - call_score(ssn, fn, other, whose, every, shared=True)
            assert apart == pytest.approx(apart[:1].repeat(len(apart)), abs=1e-9)


@pytest.mark.parametrize(("name", "arguments"), SCORING, ids=lambda value: str(value))
@moderate
@given(snapshot=busy_snapshots(max_nodes=5, max_jobs=6))
def test_scores_lie_between_0_and_1_where_the_task_fits(name, arguments, snapshot):
    ssn = opened(snapshot, name, arguments)
    room = SchedulingSession(snapshot)
    room.open(of_one_plugin("resources").plugins())
    room.nodes = ssn.nodes
    every = Nodes(ssn.nodes)
    for task, job in asked(snapshot):
        fits = np.logical_and.reduce(
            [every.all(True), *(call_predicate(room, fn, task, job, every) for fn in room.predicates)]
        )
        for fn in ssn.scores:
            found = call_score(ssn, fn, task, job, every)[fits] / fn.weight
            assert ((found >= -1e-9) & (found <= 1 + 1e-9)).all()


@pytest.mark.parametrize("name", ["priority", "submit_order", "fairshare"])
@moderate
@given(snapshot=busy_snapshots(max_nodes=5, max_jobs=6))
def test_a_key_orders_as_its_comparison(name, snapshot):
    ssn = opened(snapshot, name, {})
    assert ssn.pairs
    for kind, compare, key in ssn.pairs:
        rows = list(snapshot.queues.values()) if kind == "queue" else list(snapshot.jobs)
        for left, right in product(rows, rows):
            ours, theirs = key(left), key(right)
            assert compare(left, right) == (ours > theirs) - (ours < theirs)


@moderate
@given(busy_snapshots())
def test_a_node_has_reasons_exactly_when_it_is_refused(snapshot):
    ssn = SchedulingSession(snapshot)
    ssn.open(PACKED.plugins())
    for task, job in asked(snapshot):
        candidates = ssn.candidates(task, job)
        for number in range(len(ssn.nodes)):
            assert bool(reasons_on(ssn, task, job, number)) != candidates.allows(number)


@settings(moderate, max_examples=30)
@given(busy_snapshots(max_jobs=7), st.data())
def test_discarding_restores_the_session_exactly(snapshot, data):
    ssn = SchedulingSession(snapshot)
    ssn.open(RUTHLESS.plugins())
    first, second = ssn.statement(), ssn.statement()
    _do_something(ssn, snapshot, first, data)
    before = _state(ssn, snapshot)
    _do_something(ssn, snapshot, second, data)
    second.discard()
    assert _state(ssn, snapshot) == before
    fresh = SchedulingSession(snapshot)
    fresh.open(RUTHLESS.plugins())
    first.discard()
    assert _state(ssn, snapshot) == _state(fresh, snapshot)


def _do_something(ssn, snapshot, statement, data) -> None:
    running = {id(job) for job in snapshot.running}
    gone = {id(operation.job) for operation in statement.operations}
    for job in data.draw(st.permutations(snapshot.jobs)) if snapshot.jobs else ():
        if id(job) in gone:
            continue
        if id(job) in running:
            statement.evict(job)
        elif (number := ssn.candidates(job.whole, job).best()) is not None:
            statement.allocate(job, ssn.part_on(job.whole, number))


def _state(ssn: SchedulingSession, snapshot: Snapshot) -> tuple[Any, ...]:
    """Everything that results depend on: the nodes, and each plugin's results for them."""
    every = Nodes(ssn.nodes)
    scores = [call_score(ssn, fn, *one, every).tolist() for fn in ssn.scores for one in asked(snapshot)]
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
