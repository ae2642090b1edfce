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
from tests.scheduling.placement.inline_plugins import (
    InlinePlugin,
    job,
    node,
    run_with,
    running_on,
    snapshot,
    units,
)


def raise_error(*_, **__):
    raise RuntimeError("out of order")


def refuse(*_):
    return Reason("no", "no")


def cluster():
    """A snapshot with space for all jobs, including GPUs and a spread gang."""
    wide = Job("wide", "lab", tuple(Task(f"t{n}", units(100, 0, 0, 50)) for n in range(2)), gang=Gang.SPREAD)
    return snapshot([node("a", gpu=1), node("b", gpu=1)], [job("one"), job("two", queue="other"), wide],
                    Queue("lab"), Queue("other"))  # fmt: skip


def add_opposite_infinite_scores(ssn: SchedulingSession) -> None:
    ssn.add_node_order_fn(lambda *_: math.inf, fixed=True)
    ssn.add_node_order_fn(lambda *_: -math.inf, fixed=True)


def add_key_that_stops_comparing(ssn: SchedulingSession) -> None:
    """Add queue keys that can be compared only until a job is placed."""
    ssn.add_queue_order_fn(key=lambda queue: queue.name if ssn.changed and queue.name == "lab" else 1)


FAILURES = {
    "opening": raise_error,
    "predicate": lambda ssn: ssn.add_predicate_fn(raise_error),
    "predicate, batch": lambda ssn: ssn.add_predicate_fn(refuse, batch=raise_error),
    "predicate, batch of a wrong length": lambda ssn: ssn.add_predicate_fn(
        refuse, batch=lambda *_: np.array([False] * 7)
    ),
    "predicate, batch returning None": lambda ssn: ssn.add_predicate_fn(refuse, batch=lambda *_: None),
    "predicate, fixed": lambda ssn: ssn.add_predicate_fn(raise_error, fixed=True),
    "predicate, when": lambda ssn: ssn.add_predicate_fn(refuse, when=raise_error),
    "predicate, need": lambda ssn: ssn.add_predicate_fn(refuse, need=(0, raise_error)),
    "predicate, need that is a text": lambda ssn: ssn.add_predicate_fn(refuse, need=(0, lambda _: "lots")),
    "predicate, need that is not a number": lambda ssn: ssn.add_predicate_fn(
        refuse, need=(0, lambda _: math.nan)
    ),
    "predicate, need of an unknown column": lambda ssn: ssn.add_predicate_fn(refuse, need=(99, lambda _: 1)),
    "predicate, need that is not a pair": lambda ssn: ssn.add_predicate_fn(refuse, need=7),
    "pre-predicate": lambda ssn: ssn.add_pre_predicate_fn(raise_error),
    "score": lambda ssn: ssn.add_node_order_fn(raise_error),
    "score, batch": lambda ssn: ssn.add_node_order_fn(raise_error, batch=raise_error),
    "score, fixed": lambda ssn: ssn.add_node_order_fn(raise_error, fixed=True),
    "score that is a text": lambda ssn: ssn.add_node_order_fn(lambda *_: "good"),
    "score, batch of a wrong length": lambda ssn: ssn.add_node_order_fn(
        raise_error, batch=lambda *_: np.ones(7)
    ),
    "score that is not a number": lambda ssn: ssn.add_node_order_fn(lambda *_: math.nan),
    "score that is not a number, fixed": lambda ssn: ssn.add_node_order_fn(lambda *_: math.nan, fixed=True),
    "infinite score": lambda ssn: ssn.add_node_order_fn(lambda *_: math.inf),
    "infinite score, fixed": lambda ssn: ssn.add_node_order_fn(lambda *_: math.inf, fixed=True),
    "infinite score, ranked": lambda ssn: ssn.add_node_order_fn(lambda *_: math.inf, ranks_by=lambda _: None),
    "negative infinite score": lambda ssn: ssn.add_node_order_fn(lambda *_: -math.inf),
    "negative infinite score, fixed": lambda ssn: ssn.add_node_order_fn(lambda *_: -math.inf, fixed=True),
    "negative infinite score, ranked": lambda ssn: ssn.add_node_order_fn(
        lambda *_: -math.inf, ranks_by=lambda _: None
    ),
    "infinite scores that cancel out": add_opposite_infinite_scores,
    "scores whose sum overflows": lambda ssn: [
        ssn.add_node_order_fn(lambda *_: 1e308, fixed=fixed) for fixed in (True, True, False, False)
    ],
    "score, infinite weight": lambda ssn: ssn.add_node_order_fn(lambda *_: 0.0, weight=math.inf),
    "score, ranked": lambda ssn: ssn.add_node_order_fn(raise_error, ranks_by=lambda _: None),
    "score that is not a number, ranked": lambda ssn: ssn.add_node_order_fn(
        lambda *_: math.nan, ranks_by=lambda _: None
    ),
    "score, ranks by": lambda ssn: ssn.add_node_order_fn(lambda *_: 1.0, ranks_by=raise_error),
    "score, ranks by an unhashable key": lambda ssn: ssn.add_node_order_fn(
        lambda *_: 1.0, ranks_by=lambda _: []
    ),
    "GPU order": lambda ssn: ssn.add_gpu_order_fn(raise_error),
    "GPU order returning None": lambda ssn: ssn.add_gpu_order_fn(lambda *_: None),
    "GPU order that is not a number": lambda ssn: ssn.add_gpu_order_fn(lambda *_: math.nan),
    "infinite GPU order": lambda ssn: ssn.add_gpu_order_fn(
        lambda _, __, device: math.inf if device else -math.inf
    ),
    "queue order": lambda ssn: ssn.add_queue_order_fn(raise_error),
    "queue order, key": lambda ssn: ssn.add_queue_order_fn(key=raise_error),
    "queue order returning None": lambda ssn: ssn.add_queue_order_fn(lambda *_: None),
    "queue order that is a text": lambda ssn: ssn.add_queue_order_fn(lambda *_: "first"),
    "queue order, keys that do not compare": lambda ssn: ssn.add_queue_order_fn(
        key=lambda queue: 1 if queue.name == "lab" else "one"
    ),
    "job order returning None": lambda ssn: ssn.add_job_order_fn(lambda *_: None),
    "job order": lambda ssn: ssn.add_job_order_fn(raise_error),
    "job order, key": lambda ssn: ssn.add_job_order_fn(key=raise_error),
    "job order, keys that do not compare": lambda ssn: ssn.add_job_order_fn(
        key=lambda job: 1 if job.id == "one" else "one"
    ),
    "task order": lambda ssn: ssn.add_task_order_fn(raise_error),
    "task order, key": lambda ssn: ssn.add_task_order_fn(key=raise_error),
    "task order returning None": lambda ssn: ssn.add_task_order_fn(lambda *_: None),
    "task order, keys returning None": lambda ssn: ssn.add_task_order_fn(key=lambda _: None),
    "task order, keys that do not compare": lambda ssn: ssn.add_task_order_fn(
        key=lambda task: 1 if task.name == "t0" else "one"
    ),
    "quota gate": lambda ssn: ssn.add_job_over_capacity_fn(raise_error),
    "event handler": lambda ssn: ssn.add_event_handler(allocate=raise_error, deallocate=raise_error),
    "shape": lambda ssn: ssn.add_shape_fn(raise_error),
    "shape that is not hashable": lambda ssn: ssn.add_shape_fn(lambda job: [job.id]),
}


@pytest.mark.parametrize("on_open", FAILURES.values(), ids=FAILURES.keys())
def test_the_cycle_continues_without_the_result_of_a_failing_plugin(on_open):
    cycle = run_with(cluster(), InlinePlugin(name="broken", on_open=on_open))
    assert [verdict.outcome for verdict in cycle.verdicts] == [VerdictOutcome.PLACED] * 3
    assert list(cycle.ssn.failures.by_plugin) == ["broken"]
    assert cycle.ssn.failures.count["broken"] >= 1
    assert "broken" in as_result(cycle)["failures"]
    assert any(line.startswith("failed  broken") for line in as_lines(cycle))


def test_a_failure_on_close_is_reported():
    cycle = run_with(cluster(), InlinePlugin(name="broken", on_close=raise_error))
    assert cycle.ssn.failures.by_plugin == {"broken": "RuntimeError: out of order"}


def test_a_plugin_that_fails_to_open_registers_nothing():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refuse)
        ssn.add_pre_predicate_fn(refuse)
        ssn.add_job_over_capacity_fn(refuse)
        raise RuntimeError("out of order")

    cycle = run_with(cluster(), InlinePlugin(name="broken", on_open=on_open))
    assert [verdict.outcome for verdict in cycle.verdicts] == [VerdictOutcome.PLACED] * 3
    assert list(cycle.ssn.failures.by_plugin) == ["broken"]


def test_a_second_quota_gate_is_rejected_at_run_time():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_job_over_capacity_fn(lambda _: None)

    cycle = run_with(
        cluster(), InlinePlugin(name="first", on_open=on_open), InlinePlugin(name="second", on_open=on_open)
    )
    assert cycle.ssn.failures.by_plugin == {
        "second": "ValueError: The quota gate is already registered by “first”."
    }


def test_a_failure_is_a_reason_of_waiting_sessions():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(raise_error)

    cycle = run_with(snapshot([node("a")], [job("big", 99)]), InlinePlugin(name="broken", on_open=on_open))
    (failed,) = cycle.verdicts[0].why.failures
    assert (failed.code, failed.plugin) == (FAILED, "broken")
    assert failed.text == "The plugin broken failed and was ignored: RuntimeError: out of order"
    reasons = as_result(cycle)["verdicts"][0]["reasons"]
    assert [reason["code"] for reason in reasons] == ["cpu_cores", FAILED]


def test_a_failing_summary_is_replaced_by_a_default_text():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refuse, summary=raise_error)

    cycle = run_with(snapshot([node("a")], [job("j")]), InlinePlugin(name="mute", on_open=on_open))
    assert cycle.verdicts[0].why.message == "The only ready slot does not fit: refused by mute."


@pytest.mark.parametrize("callback", [raise_error, lambda *_: None], ids=["raises", "returns None"])
@pytest.mark.parametrize("action", ["reclaim", "preempt"])
def test_a_failing_victim_filter_accepts_no_victim(action, callback):
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_reclaimable_fn(callback)
        ssn.add_preemptable_fn(callback)

    def outcome(*options: InlinePlugin):
        running = [
            running_on("a", job("r0", 1, queue="greedy", preemptible=True)),
            running_on("a", job("r1", 1, queue="greedy", preemptible=True)),
            running_on("a", job("r2", 2, queue="lab", preemptible=True, priority=1)),
        ]
        jobs = [*running, job("new", 1, priority=90)]
        cluster = snapshot([node("a")], jobs, Queue("lab", weight=9), Queue("greedy", weight=1))
        cycle = run_with(cluster, *options, actions=("allocate", action))
        return cycle, cycle.verdicts[0].outcome

    assert outcome()[1] is VerdictOutcome.HELD
    cycle, found_outcome = outcome(InlinePlugin(name="broken", on_open=on_open))
    assert found_outcome is VerdictOutcome.WAITING
    assert not cycle.evictions
    assert "broken" in cycle.ssn.failures.by_plugin


def test_a_score_that_is_not_a_number_does_not_exclude_a_node():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(lambda _, __, state: math.nan if state.name == "a" else 1.0)

    cycle = run_with(
        snapshot([node("a"), node("b", 1)], [job("x"), job("y")]),
        InlinePlugin(name="broken", on_open=on_open),
    )
    assert [verdict.parts[0].node for verdict in cycle.verdicts] == ["b", "a"]
    assert cycle.ssn.failures.by_plugin == {"broken": "ValueError: a score is not a number"}


@pytest.mark.parametrize(
    "options", [{}, {"ranks_by": lambda _: None}, {"fixed": True}], ids=["", "ranked", "fixed"]
)
@pytest.mark.parametrize("invalid", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_for_one_node_is_ignored_for_all_nodes(invalid, options):
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(lambda _, __, state: invalid if state.name == "a" else 1.0, **options)

    cycle = run_with(
        snapshot([node("a", 1), node("b")], [job("x")]), InlinePlugin(name="broken", on_open=on_open)
    )
    assert cycle.verdicts[0].parts[0].node == "a"
    assert not cycle.verdicts[0].scores.get("broken")
    assert json.dumps(as_result(cycle), allow_nan=False)
    assert "ValueError: a score " in cycle.ssn.failures.by_plugin["broken"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ranks_by": lambda _: None},
        {"fixed": True},
        {"batch": lambda _, __, nodes: nodes.capacity[:, 0] / 100},
    ],
    ids=["", "ranked", "fixed", "batch"],
)
def test_a_score_outside_0_to_1_is_clipped_and_reported_once(options):
    """Cores as a score: without clipping the fuller slot of the other plugin never wins."""

    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(lambda _, __, state: state.node.capacity[0] / 100, **options)

    nodes = [node("a", 2, taken=units(100)), node("b", 4)]
    cycle = run_with(
        snapshot(nodes, [job("x"), job("y")]),
        InlinePlugin(name="loud", on_open=on_open),
        names=("resources", "binpack"),
    )
    assert cycle.verdicts[0].parts[0].node == "a"
    assert cycle.verdicts[0].scores["loud"] == 1.0
    assert cycle.ssn.failures.by_plugin == {}
    assert list(cycle.ssn.failures.clipped) == ["loud"]
    assert as_result(cycle)["clipped_scores"]["loud"] in (2.0, 4.0)
    assert len([line for line in as_lines(cycle) if "was clipped" in line]) == 1


def test_scores_of_ineligible_slots_are_not_reported():
    full = node("a", 2, taken=units(200))
    cycle = run_with(snapshot([full, node("b", 4)], [job("x"), job("y", 3)]))
    assert cycle.ssn.failures.clipped == {}


def test_a_failing_queue_order_leaves_the_others_in_effect():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_queue_order_fn(key=lambda queue: 1 if queue.name == "lab" else "one")

    failing = InlinePlugin(name="broken", on_open=on_open)
    working = InlinePlugin(
        name="right", on_open=lambda ssn: ssn.add_queue_order_fn(key=lambda queue: queue.name)
    )
    jobs = [
        job(name, queue=queue)
        for name, queue in zip("123456", ["lab", "c", "b", "a", "lab", "a"], strict=True)
    ]
    cycle = run_with(
        snapshot([node("n", 9)], jobs, Queue("lab"), Queue("a"), Queue("b"), Queue("c")),
        failing,
        working,
        names=("resources",),
    )
    assert [verdict.job.id for verdict in cycle.verdicts] == ["4", "6", "3", "2", "1", "5"]
    assert [verdict.outcome for verdict in cycle.verdicts] == [VerdictOutcome.PLACED] * 6
    assert set(cycle.ssn.failures.by_plugin) == {"broken"}


def test_remaining_jobs_are_ordered_once_when_queue_keys_stop_comparing():
    jobs = [job(f"{number}", queue=queue) for number, queue in enumerate(["lab", "other"] * 4)]
    cycle = run_with(
        snapshot([node("n", 99)], jobs, Queue("lab"), Queue("other")),
        InlinePlugin(name="broken", on_open=add_key_that_stops_comparing),
        names=("resources",),
    )
    assert sorted(verdict.job.id for verdict in cycle.verdicts) == list("01234567")
    assert set(cycle.ssn.failures.by_plugin) == {"broken"}


def test_a_very_large_need_exceeds_every_node():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refuse, need=(0, lambda _: 10**30))

    (verdict,) = run_with(
        snapshot([node("a")], [job("j")]), InlinePlugin(name="greedy", on_open=on_open)
    ).verdicts
    assert (verdict.outcome, verdict.why.message) == (
        VerdictOutcome.IMPOSSIBLE,
        "The only ready slot does not fit: refused (no).",
    )


def test_two_needs_of_one_column_both_count():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(refuse, need=(0, lambda _: 50))

    cycle = run_with(snapshot([node("a", 1)], [job("j", 2)]), InlinePlugin(name="modest", on_open=on_open))
    assert cycle.verdicts[0].outcome is VerdictOutcome.IMPOSSIBLE


def test_every_plugin_is_timed():
    cycle = run_with(cluster())
    assert set(cycle.ssn.timings.seconds) >= {"resources", "priority", "fairshare", "binpack"}
    assert all(seconds >= 0 for seconds in cycle.ssn.timings.seconds.values())
