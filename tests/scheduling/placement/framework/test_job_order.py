"""Queue order: bands, the tree of queues, and ties."""

from __future__ import annotations

import pytest

from scheduling.placement.framework.job_order import jobs_in_order
from scheduling.placement.framework.model import Job, Queue, Task
from scheduling.placement.framework.session import SchedulingSession
from tests.scheduling.placement.inline_plugins import Inline, node, run_with, snapshot

DEEP = (
    Queue("uni"),
    Queue("uni/a", "uni"),
    Queue("uni/a/ann", "uni/a"),
    Queue("uni/a/bob", "uni/a"),
    Queue("uni/b", "uni"),
    Queue("firm"),
)


def waiting(name: str, leaf: str = "", *, priority: int = 50, created: float = 0) -> Job:
    return Job(name, leaf or "lab", (Task("t", (100, 0, 0, 0)),), priority=priority, created=created)


def by_factor(ssn: SchedulingSession) -> None:
    ssn.add_queue_order_fn(key=lambda queue: -queue.factor)


def by_priority(ssn: SchedulingSession) -> None:
    ssn.add_job_order_fn(lambda left, right: right.priority - left.priority)


def newest_first(ssn: SchedulingSession) -> None:
    ssn.add_job_order_fn(key=lambda job: -job.created)


def order(jobs: list[Job], *opens, queues: tuple[Queue, ...] = ()) -> list[str]:
    ssn = SchedulingSession(snapshot([], jobs, *queues))
    ssn.open([Inline(name=f"p{number}", opens=each) for number, each in enumerate(opens)])
    found = [job.id for job in jobs_in_order(ssn, jobs)]
    assert ssn.failures.by_plugin == {}
    return found


@pytest.mark.parametrize(
    ("jobs", "opens", "expected"),
    [
        ([], [], []),
        ([waiting("c"), waiting("a"), waiting("b", created=-1)], [], ["b", "a", "c"]),
        ([waiting("a", created=1), waiting("b", created=2)], [newest_first], ["b", "a"]),
        (
            [waiting("a"), waiting("b", priority=90), waiting("c", priority=10)],
            [by_priority],
            ["b", "a", "c"],
        ),
        (
            [waiting("a", created=1), waiting("b", created=2), waiting("c", priority=90)],
            [by_priority, newest_first],
            ["c", "b", "a"],
        ),
        (
            [waiting("a", created=1), waiting("b", created=2), waiting("c", priority=90)],
            [newest_first, by_priority],
            ["b", "a", "c"],
        ),
    ],
    ids=["nothing", "age, then id", "a key", "a comparison", "first non-zero wins", "in the plugins' order"],
)
def test_jobs_of_one_queue(jobs, opens, expected):
    assert order(jobs, *opens) == expected


def test_an_order_before_the_queues_makes_bands_and_one_after_them_sorts_within():
    queues = (Queue("rich", factor=1.0), Queue("poor", factor=0.1))
    jobs = [
        waiting("p1", "poor", priority=90), waiting("p2", "poor"), waiting("r1", "rich"),
        waiting("r2", "rich", priority=90),
    ]  # fmt: skip
    assert order(jobs, by_priority, by_factor, queues=queues) == ["r2", "p1", "r1", "p2"]
    assert order(jobs, by_factor, by_priority, queues=queues) == ["r2", "r1", "p1", "p2"]


def test_queues_are_compared_where_they_part():
    queues = (
        Queue("uni", factor=0.5), Queue("uni/a", "uni", factor=0.9), Queue("uni/b", "uni", factor=0.2),
        Queue("firm", factor=0.4), Queue("firm/c", "firm", factor=1.0),
    )  # fmt: skip
    jobs = [waiting("c", "firm/c"), waiting("b", "uni/b"), waiting("a", "uni/a")]
    assert order(jobs, by_factor, queues=queues) == ["a", "b", "c"]


def test_of_equal_queues_one_with_nothing_below_it_comes_first_then_the_older_job():
    jobs = [
        waiting("deep", "uni/a/ann", created=0), waiting("deeper", "uni/a/bob", created=1),
        waiting("flat", "firm", created=9), waiting("middle", "uni/b", created=8),
    ]  # fmt: skip
    assert order(jobs, by_factor, queues=DEEP) == ["flat", "middle", "deep", "deeper"]


def test_a_queues_own_jobs_are_siblings_of_its_child_queues():
    jobs = [waiting("below", "uni/a/ann", created=1), waiting("own", "uni/a", created=2)]
    assert sorted(order(jobs, by_factor, queues=DEEP)) == ["below", "own"]


def test_a_job_of_an_unknown_queue_is_not_lost():
    assert order([waiting("lost", "nowhere"), waiting("known", "firm")], by_factor, queues=DEEP) == [
        "lost", "known",
    ]  # fmt: skip


def test_the_queue_order_changes_with_placements():
    jobs = [waiting(f"a{number}", "a", created=number) for number in range(3)]
    jobs += [waiting(f"b{number}", "b", created=10 + number) for number in range(3)]
    cycle = run_with(snapshot([node("s", 6)], jobs, Queue("a"), Queue("b")), names=("resources", "fairshare"))
    assert [verdict.job.id for verdict in cycle.verdicts] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_queues_below_one_that_joins_compete_with_its_siblings():
    """uni/a has no share of its own: its users compete with uni/b, and its factor is ignored."""
    queues = (
        Queue("uni"),
        Queue("uni/a", "uni", factor=0.01, joins=True),
        Queue("uni/a/ann", "uni/a", factor=0.9),
        Queue("uni/a/bob", "uni/a", factor=0.3),
        Queue("uni/b", "uni", factor=0.5),
    )
    jobs = [waiting("bob", "uni/a/bob"), waiting("b", "uni/b"), waiting("ann", "uni/a/ann")]
    assert order(jobs, by_factor, queues=queues) == ["ann", "b", "bob"]


@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e-6])
def test_a_queue_with_hardly_any_share_breaks_no_cycle_and_goes_last(weight):
    """All queues of a parent without a share, one queue without a share, and one without its own."""
    queues = (
        Queue("a", weight=weight, factor=0.0),
        Queue("a/u", "a", weight=weight, factor=0.0),
        Queue("b"),
        Queue("b/p", "b", joins=True, weight=0.0),
        Queue("b/p/v", "b/p"),
    )
    jobs = [waiting("a1", "a/u"), waiting("a2", "a/u"), waiting("b1", "b/p/v", created=5)]
    cycle = run_with(
        snapshot([node("s", 6)], jobs, *queues), names=("resources", "fairshare"), actions=("allocate",)
    )
    assert [verdict.job.id for verdict in cycle.verdicts] == ["b1", "a1", "a2"]
    assert cycle.ssn.failures.by_plugin == {}


def test_two_queue_orders_are_applied_one_after_the_other():
    queues = (Queue("a", weight=1.0), Queue("b", weight=2.0), Queue("c", factor=0.5, weight=9.0))
    jobs = [waiting("ja", "a"), waiting("jb", "b"), waiting("jc", "c")]

    def by_weight(ssn: SchedulingSession) -> None:
        ssn.add_queue_order_fn(lambda left, right: int(right.weight - left.weight))

    assert order(jobs, by_factor, by_weight, queues=queues) == ["jb", "ja", "jc"]


def test_an_order_needs_a_comparison_or_a_key():
    ssn = SchedulingSession(snapshot([], []))
    with pytest.raises(TypeError, match="needs a comparison or a key"):
        ssn.add_job_order_fn()
