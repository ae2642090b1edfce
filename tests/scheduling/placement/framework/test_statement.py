"""Statements: virtual changes, discarded or committed."""

from __future__ import annotations

from scheduling.placement.framework.model import Job, JobPart, Node, Queue, Snapshot, Task
from scheduling.placement.framework.session import SchedulingSession
from scheduling.placement.framework.statement import OperationKind
from tests.scheduling.placement.inline_plugins import units

TASK = Task("t", units(100, 200, 0, 50), 3)


def session() -> SchedulingSession:
    running = Job("old", "lab", (TASK,), parts=(JobPart("a", (TASK,), ((0, 50),)), JobPart("gone", (TASK,))))
    nodes = [Node("a", units(400, 800, 0, 200), max_leases=4, ports=10), Node("b", units(400, 800, 0, 0))]
    return SchedulingSession(Snapshot(0, nodes, {"lab": Queue("lab")}, [running]))


def free_levels(ssn: SchedulingSession, name: str = "a") -> list[int]:
    return ssn.nodes.levels[ssn.nodes.index[name]].tolist()


def test_allocating_reduces_the_free_space_of_the_node():
    ssn = session()
    assert free_levels(ssn) == [300, 600, 0, 150, 3, 7]
    ssn.statement().allocate(Job("new", "lab", (TASK,)), JobPart("a", (TASK,), ((1, 50),)))
    assert free_levels(ssn) == [200, 400, 0, 100, 2, 4]
    assert ssn.nodes.free_devices.tolist() == [[50, 50], [-1, -1]]


def test_allocating_without_a_lease_takes_no_lease():
    ssn = session()
    ssn.statement().allocate(Job("new", "lab", (TASK,)), JobPart("a", (TASK,)), leases=0)
    assert free_levels(ssn)[4] == 3


def test_evicting_releases_the_parts_on_present_nodes():
    ssn = session()
    statement = ssn.statement()
    statement.evict(next(iter(ssn.snapshot.running)))
    assert free_levels(ssn) == [400, 800, 0, 200, 4, 10]
    assert [(each.kind, each.part.node) for each in statement.operations] == [(OperationKind.EVICT, "a")]


def test_discarding_undoes_the_newest_first_and_keeps_other_statements():
    ssn, calls = session(), []
    ssn.add_event_handler(
        allocate=lambda job, _: calls.append(("+", job.id)),
        deallocate=lambda job, _: calls.append(("-", job.id)),
    )
    first, statement = ssn.statement(), ssn.statement()
    first.allocate(Job("one", "lab", (TASK,)), JobPart("b", (TASK,)))
    before = (free_levels(ssn), free_levels(ssn, "b"))
    statement.allocate(Job("two", "lab", (TASK,)), JobPart("b", (TASK,)))
    statement.evict(next(iter(ssn.snapshot.running)))
    statement.discard()
    assert (free_levels(ssn), free_levels(ssn, "b")) == before
    assert (len(first.operations), len(statement.operations)) == (1, 0)
    assert calls == [("+", "one"), ("+", "two"), ("-", "old"), ("+", "old"), ("-", "two")]


def test_discarding_undoes_everything():
    ssn = session()
    before = ssn.nodes.levels.tolist(), ssn.nodes.free_devices.tolist()
    statement = ssn.statement()
    statement.evict(next(iter(ssn.snapshot.running)))
    statement.allocate(Job("new", "lab", (TASK,)), JobPart("a", (TASK,), ((0, 50),)))
    statement.discard()
    assert (ssn.nodes.levels.tolist(), ssn.nodes.free_devices.tolist()) == before
    assert not statement.operations


def test_committing_returns_the_operations_and_keeps_their_effect():
    ssn = session()
    statement = ssn.statement()
    statement.allocate(Job("new", "lab", (TASK,)), JobPart("b", (TASK,)))
    operations = statement.commit()
    assert [(each.kind, each.job.id) for each in operations] == [(OperationKind.ALLOCATE, "new")]
    statement.discard()
    assert free_levels(ssn, "b")[:2] == [300, 600]
