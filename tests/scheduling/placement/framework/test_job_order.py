"""Queue order: bands, the tree of queues, and ties."""

from __future__ import annotations

import pytest

from scheduling.placement.framework.job_order import jobs_in_order
from scheduling.placement.framework.model import Job, Queue, Task
from scheduling.placement.framework.session import SchedulingSession
from tests.scheduling.placement.inline_plugins import InlinePlugin, node, run_with, snapshot, units

NESTED_QUEUES = (
    Queue("uni"),
    Queue("uni/a", "uni"),
    Queue("uni/a/ann", "uni/a"),
    Queue("uni/a/bob", "uni/a"),
    Queue("uni/b", "uni"),
    Queue("firm"),
)


def waiting_job(name: str, leaf: str = "", *, priority: int = 50, created: float = 0) -> Job:
    return Job(name, leaf or "lab", (Task("t", units(100)),), priority=priority, created=created)


def by_factor(ssn: SchedulingSession) -> None:
    ssn.add_queue_order_fn(key=lambda queue: -queue.factor)


def by_priority(ssn: SchedulingSession) -> None:
    ssn.add_job_order_fn(lambda left, right: right.priority - left.priority)


def newest_first(ssn: SchedulingSession) -> None:
    ssn.add_job_order_fn(key=lambda job: -job.created)


def ordered_ids(jobs: list[Job], *on_open, queues: tuple[Queue, ...] = ()) -> list[str]:
    ssn = SchedulingSession(snapshot([], jobs, *queues))
    ssn.open([InlinePlugin(name=f"p{number}", on_open=each) for number, each in enumerate(on_open)])
    ids = [job.id for job in jobs_in_order(ssn, jobs)]
    assert ssn.failures.by_plugin == {}
    return ids


@pytest.mark.parametrize(
    ("jobs", "on_open", "expected"),
    [
        ([], [], []),
        ([waiting_job("c"), waiting_job("a"), waiting_job("b", created=-1)], [], ["b", "a", "c"]),
        ([waiting_job("a", created=1), waiting_job("b", created=2)], [newest_first], ["b", "a"]),
        (
            [waiting_job("a"), waiting_job("b", priority=90), waiting_job("c", priority=10)],
            [by_priority],
            ["b", "a", "c"],
        ),
        (
            [waiting_job("a", created=1), waiting_job("b", created=2), waiting_job("c", priority=90)],
            [by_priority, newest_first],
            ["c", "b", "a"],
        ),
        (
            [waiting_job("a", created=1), waiting_job("b", created=2), waiting_job("c", priority=90)],
            [newest_first, by_priority],
            ["b", "a", "c"],
        ),
    ],
    ids=["no jobs", "age, then id", "a key", "a comparison", "first non-zero wins", "in the plugins' order"],
)
def test_jobs_of_one_queue_follow_the_job_orders(jobs, on_open, expected):
    assert ordered_ids(jobs, *on_open) == expected


def test_a_job_order_before_the_queue_order_makes_bands_and_one_after_it_sorts_within_queues():
    queues = (Queue("rich", factor=1.0), Queue("poor", factor=0.1))
    jobs = [
        waiting_job("p1", "poor", priority=90), waiting_job("p2", "poor"), waiting_job("r1", "rich"),
        waiting_job("r2", "rich", priority=90),
    ]  # fmt: skip
    assert ordered_ids(jobs, by_priority, by_factor, queues=queues) == ["r2", "p1", "r1", "p2"]
    assert ordered_ids(jobs, by_factor, by_priority, queues=queues) == ["r2", "r1", "p1", "p2"]


def test_queues_are_compared_below_their_common_parent():
    queues = (
        Queue("uni", factor=0.5), Queue("uni/a", "uni", factor=0.9), Queue("uni/b", "uni", factor=0.2),
        Queue("firm", factor=0.4), Queue("firm/c", "firm", factor=1.0),
    )  # fmt: skip
    jobs = [waiting_job("c", "firm/c"), waiting_job("b", "uni/b"), waiting_job("a", "uni/a")]
    assert ordered_ids(jobs, by_factor, queues=queues) == ["a", "b", "c"]


def test_among_equal_queues_a_queue_without_children_comes_first_then_the_older_job():
    jobs = [
        waiting_job("deep", "uni/a/ann", created=0), waiting_job("deeper", "uni/a/bob", created=1),
        waiting_job("flat", "firm", created=9), waiting_job("middle", "uni/b", created=8),
    ]  # fmt: skip
    assert ordered_ids(jobs, by_factor, queues=NESTED_QUEUES) == ["flat", "middle", "deep", "deeper"]


def test_the_jobs_of_a_queue_are_siblings_of_its_child_queues():
    jobs = [waiting_job("below", "uni/a/ann", created=1), waiting_job("own", "uni/a", created=2)]
    assert sorted(ordered_ids(jobs, by_factor, queues=NESTED_QUEUES)) == ["below", "own"]


def test_a_job_of_an_unknown_queue_is_not_lost():
    jobs = [waiting_job("lost", "nowhere"), waiting_job("known", "firm")]
    assert ordered_ids(jobs, by_factor, queues=NESTED_QUEUES) == ["lost", "known"]


def test_the_queue_order_changes_with_placements():
    jobs = [waiting_job(f"a{number}", "a", created=number) for number in range(3)]
    jobs += [waiting_job(f"b{number}", "b", created=10 + number) for number in range(3)]
    cycle = run_with(snapshot([node("s", 6)], jobs, Queue("a"), Queue("b")), names=("resources", "fairshare"))
    assert [verdict.job.id for verdict in cycle.verdicts] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_children_of_a_joining_queue_compete_with_its_siblings():
    """uni/a has no share of its own: its users compete with uni/b, and its factor is ignored."""
    queues = (
        Queue("uni"),
        Queue("uni/a", "uni", factor=0.01, joins=True),
        Queue("uni/a/ann", "uni/a", factor=0.9),
        Queue("uni/a/bob", "uni/a", factor=0.3),
        Queue("uni/b", "uni", factor=0.5),
    )
    jobs = [waiting_job("bob", "uni/a/bob"), waiting_job("b", "uni/b"), waiting_job("ann", "uni/a/ann")]
    assert ordered_ids(jobs, by_factor, queues=queues) == ["ann", "b", "bob"]


@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e-6])
def test_a_queue_with_almost_no_share_comes_last(weight):
    """All queues of a parent without a share, one queue without a share, and one without its own."""
    queues = (
        Queue("a", weight=weight, factor=0.0),
        Queue("a/u", "a", weight=weight, factor=0.0),
        Queue("b"),
        Queue("b/p", "b", joins=True, weight=0.0),
        Queue("b/p/v", "b/p"),
    )
    jobs = [waiting_job("a1", "a/u"), waiting_job("a2", "a/u"), waiting_job("b1", "b/p/v", created=5)]
    cycle = run_with(
        snapshot([node("s", 6)], jobs, *queues), names=("resources", "fairshare"), actions=("allocate",)
    )
    assert [verdict.job.id for verdict in cycle.verdicts] == ["b1", "a1", "a2"]
    assert cycle.ssn.failures.by_plugin == {}


def test_two_queue_orders_are_applied_one_after_the_other():
    queues = (Queue("a", weight=1.0), Queue("b", weight=2.0), Queue("c", factor=0.5, weight=9.0))
    jobs = [waiting_job("ja", "a"), waiting_job("jb", "b"), waiting_job("jc", "c")]

    def by_weight(ssn: SchedulingSession) -> None:
        ssn.add_queue_order_fn(lambda left, right: int(right.weight - left.weight))

    assert ordered_ids(jobs, by_factor, by_weight, queues=queues) == ["jb", "ja", "jc"]


def test_an_order_needs_a_comparison_or_a_key():
    ssn = SchedulingSession(snapshot([], []))
    with pytest.raises(TypeError, match="needs a comparison or a key"):
        ssn.add_job_order_fn()
