"""A plugin that fails in any callback: the cycle continues without its result and reports it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.cycle import VerdictOutcome
from scheduling.placement.framework.explanation import FAILED
from scheduling.placement.framework.model import Gang, Job, Queue, Task
from scheduling.placement.framework.results import as_lines, as_result
from scheduling.placement.framework.session import SchedulingSession
from tests.scheduling.placement.inline_plugins import Inline, job, node, on, run_with, snapshot


def broken(*_, **__):
    raise RuntimeError("out of order")


def refusing(*_):
    return Reason("no", "no")


def world():
    """Space for all jobs, GPUs included, and a spread gang."""
    wide = Job("wide", "lab", tuple(Task(f"t{n}", (100, 0, 0, 50)) for n in range(2)), gang=Gang.SPREAD)
    return snapshot([node("a", gpu=1), node("b", gpu=1)], [job("one"), job("two", queue="other"), wide],
                    Queue("lab"), Queue("other"))  # fmt: skip


def both_ways(ssn: SchedulingSession) -> None:
    ssn.add_node_order_fn(lambda *_: math.inf, fixed=True)
    ssn.add_node_order_fn(lambda *_: -math.inf, fixed=True)


def stops_to_compare(ssn: SchedulingSession) -> None:
    """Keys that compare until a job is placed."""
    ssn.add_queue_order_fn(key=lambda queue: queue.name if ssn.changed and queue.name == "lab" else 1)


POINTS = {
    "opening": broken,
    "predicate": lambda ssn: ssn.add_predicate_fn(broken),
    "predicate, batch": lambda ssn: ssn.add_predicate_fn(refusing, batch=broken),
    "predicate, batch of a wrong length": lambda ssn: ssn.add_predicate_fn(
        refusing, batch=lambda *_: np.array([False] * 7)
    ),
    "predicate, batch of nothing": lambda ssn: ssn.add_predicate_fn(refusing, batch=lambda *_: None),
    "predicate, fixed": lambda ssn: ssn.add_predicate_fn(broken, fixed=True),
    "predicate, when": lambda ssn: ssn.add_predicate_fn(refusing, when=broken),
    "predicate, need": lambda ssn: ssn.add_predicate_fn(refusing, need=(0, broken)),
    "predicate, need of a text": lambda ssn: ssn.add_predicate_fn(refusing, need=(0, lambda _: "lots")),
    "predicate, need of no number": lambda ssn: ssn.add_predicate_fn(refusing, need=(0, lambda _: math.nan)),
    "predicate, need of no column": lambda ssn: ssn.add_predicate_fn(refusing, need=(99, lambda _: 1)),
    "predicate, need that is none": lambda ssn: ssn.add_predicate_fn(refusing, need=7),
    "pre-predicate": lambda ssn: ssn.add_pre_predicate_fn(broken),
    "score": lambda ssn: ssn.add_node_order_fn(broken),
    "score, batch": lambda ssn: ssn.add_node_order_fn(broken, batch=broken),
    "score, fixed": lambda ssn: ssn.add_node_order_fn(broken, fixed=True),
    "score of a text": lambda ssn: ssn.add_node_order_fn(lambda *_: "good"),
    "score, batch of a wrong length": lambda ssn: ssn.add_node_order_fn(broken, batch=lambda *_: np.ones(7)),
    "score of no number": lambda ssn: ssn.add_node_order_fn(lambda *_: math.nan),
    "score of no number, fixed": lambda ssn: ssn.add_node_order_fn(lambda *_: math.nan, fixed=True),
    "score without end": lambda ssn: ssn.add_node_order_fn(lambda *_: math.inf),
    "score without end, fixed": lambda ssn: ssn.add_node_order_fn(lambda *_: math.inf, fixed=True),
    "score without end, ranked": lambda ssn: ssn.add_node_order_fn(
        lambda *_: math.inf, ranks_by=lambda _: None
    ),
    "score below all": lambda ssn: ssn.add_node_order_fn(lambda *_: -math.inf),
    "score below all, fixed": lambda ssn: ssn.add_node_order_fn(lambda *_: -math.inf, fixed=True),
    "score below all, ranked": lambda ssn: ssn.add_node_order_fn(
        lambda *_: -math.inf, ranks_by=lambda _: None
    ),
    "scores without end that cancel out": both_ways,
    "scores that are too much together": lambda ssn: [
        ssn.add_node_order_fn(lambda *_: 1e308, fixed=fixed) for fixed in (True, True, False, False)
    ],
    "score, weight without end": lambda ssn: ssn.add_node_order_fn(lambda *_: 0.0, weight=math.inf),
    "score, ranked": lambda ssn: ssn.add_node_order_fn(broken, ranks_by=lambda _: None),
    "score of no number, ranked": lambda ssn: ssn.add_node_order_fn(
        lambda *_: math.nan, ranks_by=lambda _: None
    ),
    "score, ranks by": lambda ssn: ssn.add_node_order_fn(lambda *_: 1.0, ranks_by=broken),
    "score, ranks by no key": lambda ssn: ssn.add_node_order_fn(lambda *_: 1.0, ranks_by=lambda _: []),
    "GPU order": lambda ssn: ssn.add_gpu_order_fn(broken),
    "GPU order of nothing": lambda ssn: ssn.add_gpu_order_fn(lambda *_: None),
    "GPU order of no number": lambda ssn: ssn.add_gpu_order_fn(lambda *_: math.nan),
    "GPU order without end": lambda ssn: ssn.add_gpu_order_fn(
        lambda _, __, device: math.inf if device else -math.inf
    ),
    "queue order": lambda ssn: ssn.add_queue_order_fn(broken),
    "queue order, key": lambda ssn: ssn.add_queue_order_fn(key=broken),
    "queue order of nothing": lambda ssn: ssn.add_queue_order_fn(lambda *_: None),
    "queue order of a text": lambda ssn: ssn.add_queue_order_fn(lambda *_: "first"),
    "queue order, keys that do not compare": lambda ssn: ssn.add_queue_order_fn(
        key=lambda queue: 1 if queue.name == "lab" else "one"
    ),
    "job order of nothing": lambda ssn: ssn.add_job_order_fn(lambda *_: None),
    "job order": lambda ssn: ssn.add_job_order_fn(broken),
    "job order, key": lambda ssn: ssn.add_job_order_fn(key=broken),
    "job order, keys that do not compare": lambda ssn: ssn.add_job_order_fn(
        key=lambda job: 1 if job.id == "one" else "one"
    ),
    "task order": lambda ssn: ssn.add_task_order_fn(broken),
    "task order, key": lambda ssn: ssn.add_task_order_fn(key=broken),
    "task order of nothing": lambda ssn: ssn.add_task_order_fn(lambda *_: None),
    "task order, keys of nothing": lambda ssn: ssn.add_task_order_fn(key=lambda _: None),
    "task order, keys that do not compare": lambda ssn: ssn.add_task_order_fn(
        key=lambda task: 1 if task.name == "t0" else "one"
    ),
    "quota gate": lambda ssn: ssn.add_job_over_capacity_fn(broken),
    "event handler": lambda ssn: ssn.add_event_handler(allocate=broken, deallocate=broken),
    "shape": lambda ssn: ssn.add_shape_fn(broken),
    "shape that is no key": lambda ssn: ssn.add_shape_fn(lambda job: [job.id]),
}


@pytest.mark.parametrize("opens", POINTS.values(), ids=POINTS.keys())
def test_the_cycle_continues_without_its_result(opens):
    cycle = run_with(world(), Inline(name="broken", opens=opens))
    assert [verdict.outcome for verdict in cycle.verdicts] == [VerdictOutcome.PLACED] * 3
    assert list(cycle.ssn.failures.by_plugin) == ["broken"]
    assert cycle.ssn.failures.count["broken"] >= 1
    assert "broken" in as_result(cycle)["failures"]
    assert any(line.startswith("failed  broken") for line in as_lines(cycle))


def test_closing_can_fail_too():
    cycle = run_with(world(), Inline(name="broken", closes=broken))
    assert cycle.ssn.failures.by_plugin == {"broken": "RuntimeError: out of order"}


def test_a_plugin_that_cannot_open_leaves_nothing_behind():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refusing)
        ssn.add_pre_predicate_fn(refusing)
        ssn.add_job_over_capacity_fn(refusing)
        raise RuntimeError("out of order")

    cycle = run_with(world(), Inline(name="broken", opens=opens))
    assert [verdict.outcome for verdict in cycle.verdicts] == [VerdictOutcome.PLACED] * 3
    assert list(cycle.ssn.failures.by_plugin) == ["broken"]


def test_a_second_quota_gate_is_refused_at_run_time_too():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_job_over_capacity_fn(lambda _: None)

    cycle = run_with(world(), Inline(name="first", opens=opens), Inline(name="second", opens=opens))
    assert cycle.ssn.failures.by_plugin == {"second": "ValueError: The quota gate is taken by “first”."}


def test_the_failure_is_a_visible_reason_of_waiting_sessions():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(broken)

    cycle = run_with(snapshot([node("a")], [job("big", 99)]), Inline(name="broken", opens=opens))
    (failed,) = cycle.verdicts[0].why.failures
    assert (failed.code, failed.plugin) == (FAILED, "broken")
    assert failed.text == "The plugin broken failed and was ignored: RuntimeError: out of order"
    reasons = as_result(cycle)["verdicts"][0]["reasons"]
    assert [reason["code"] for reason in reasons] == ["cpu_cores", FAILED]


def test_a_summary_that_fails_costs_only_the_words():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refusing, summary=broken)

    cycle = run_with(snapshot([node("a")], [job("j")]), Inline(name="mute", opens=opens))
    assert cycle.verdicts[0].why.message == "The only ready slot does not fit: refused by mute."


@pytest.mark.parametrize("answer", [broken, lambda *_: None], ids=["raises", "answers nothing"])
@pytest.mark.parametrize("action", ["reclaim", "preempt"])
def test_a_failing_victim_filter_accepts_no_victim(action, answer):
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_reclaimable_fn(answer)
        ssn.add_preemptable_fn(answer)

    def outcome(*more: Inline):
        running = [
            on("a", job("r0", 1, queue="greedy", preemptible=True)),
            on("a", job("r1", 1, queue="greedy", preemptible=True)),
            on("a", job("r2", 2, queue="lab", preemptible=True, priority=1)),
        ]
        jobs = [*running, job("new", 1, priority=90)]
        world = snapshot([node("a")], jobs, Queue("lab", weight=9), Queue("greedy", weight=1))
        cycle = run_with(world, *more, actions=("allocate", action))
        return cycle, cycle.verdicts[0].outcome

    assert outcome()[1] is VerdictOutcome.HELD
    cycle, found = outcome(Inline(name="broken", opens=opens))
    assert found is VerdictOutcome.WAITING
    assert not cycle.evictions
    assert "broken" in cycle.ssn.failures.by_plugin


def test_a_score_of_no_number_takes_no_node_from_the_others():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(lambda _, __, state: math.nan if state.name == "a" else 1.0)

    cycle = run_with(
        snapshot([node("a"), node("b", 1)], [job("x"), job("y")]), Inline(name="broken", opens=opens)
    )
    assert [verdict.parts[0].node for verdict in cycle.verdicts] == ["b", "a"]
    assert cycle.ssn.failures.by_plugin == {"broken": "ValueError: a score is not a number"}


@pytest.mark.parametrize(
    "more", [{}, {"ranks_by": lambda _: None}, {"fixed": True}], ids=["", "ranked", "fixed"]
)
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_anywhere_counts_nothing_everywhere(wrong, more):
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(lambda _, __, state: wrong if state.name == "a" else 1.0, **more)

    cycle = run_with(snapshot([node("a", 1), node("b")], [job("x")]), Inline(name="broken", opens=opens))
    assert cycle.verdicts[0].parts[0].node == "a"
    assert not cycle.verdicts[0].scores.get("broken")
    assert json.dumps(as_result(cycle), allow_nan=False)
    assert "ValueError: a score " in cycle.ssn.failures.by_plugin["broken"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"ranks_by": lambda _: None},
        {"fixed": True},
        {"batch": lambda _, __, nodes: nodes.capacity[:, 0] / 100},
    ],
    ids=["", "ranked", "fixed", "batch"],
)
def test_a_score_outside_0_to_1_is_clipped_and_reported_once(more):
    """Cores as a score: without clipping the fuller slot of the other plugin never wins."""

    def opens(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(lambda _, __, state: state.node.capacity[0] / 100, **more)

    nodes = [node("a", 2, taken=(100, 0, 0, 0)), node("b", 4)]
    cycle = run_with(
        snapshot(nodes, [job("x"), job("y")]),
        Inline(name="loud", opens=opens),
        names=("resources", "binpack"),
    )
    assert cycle.verdicts[0].parts[0].node == "a"
    assert cycle.verdicts[0].scores["loud"] == 1.0
    assert cycle.ssn.failures.by_plugin == {}
    assert list(cycle.ssn.failures.clipped) == ["loud"]
    assert as_result(cycle)["clipped_scores"]["loud"] in (2.0, 4.0)
    assert len([line for line in as_lines(cycle) if "was clipped" in line]) == 1


def test_scores_of_slots_that_cannot_be_taken_are_not_reported():
    full = node("a", 2, taken=(200, 0, 0, 0))
    cycle = run_with(snapshot([full, node("b", 4)], [job("x"), job("y", 3)]))
    assert cycle.ssn.failures.clipped == {}


def test_a_queue_order_that_does_not_compare_leaves_the_others_in_effect():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_queue_order_fn(key=lambda queue: 1 if queue.name == "lab" else "one")

    broken_one = Inline(name="broken", opens=opens)
    right = Inline(name="right", opens=lambda ssn: ssn.add_queue_order_fn(key=lambda queue: queue.name))
    jobs = [
        job(name, queue=queue)
        for name, queue in zip("123456", ["lab", "c", "b", "a", "lab", "a"], strict=True)
    ]
    cycle = run_with(
        snapshot([node("n", 9)], jobs, Queue("lab"), Queue("a"), Queue("b"), Queue("c")),
        broken_one,
        right,
        names=("resources",),
    )
    assert [verdict.job.id for verdict in cycle.verdicts] == ["4", "6", "3", "2", "1", "5"]
    assert [verdict.outcome for verdict in cycle.verdicts] == [VerdictOutcome.PLACED] * 6
    assert set(cycle.ssn.failures.by_plugin) == {"broken"}


def test_jobs_left_when_queues_stop_comparing_are_ordered_once():
    jobs = [job(f"{number}", queue=queue) for number, queue in enumerate(["lab", "other"] * 4)]
    cycle = run_with(
        snapshot([node("n", 99)], jobs, Queue("lab"), Queue("other")),
        Inline(name="broken", opens=stops_to_compare),
        names=("resources",),
    )
    assert sorted(verdict.job.id for verdict in cycle.verdicts) == list("01234567")
    assert set(cycle.ssn.failures.by_plugin) == {"broken"}


def test_a_need_beyond_all_numbers_is_more_than_any_node_has():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refusing, need=(0, lambda _: 10**30))

    (verdict,) = run_with(snapshot([node("a")], [job("j")]), Inline(name="greedy", opens=opens)).verdicts
    assert (verdict.outcome, verdict.why.message) == (
        VerdictOutcome.IMPOSSIBLE,
        "The only ready slot does not fit: refused (no).",
    )


def test_two_needs_of_one_column_both_count():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refusing, need=(0, lambda _: 50))

    cycle = run_with(snapshot([node("a", 1)], [job("j", 2)]), Inline(name="modest", opens=opens))
    assert cycle.verdicts[0].outcome is VerdictOutcome.IMPOSSIBLE


def test_every_plugin_is_timed():
    cycle = run_with(world())
    assert set(cycle.ssn.timings.seconds) >= {"resources", "priority", "fairshare", "binpack"}
    assert all(seconds >= 0 for seconds in cycle.ssn.timings.seconds.values())
