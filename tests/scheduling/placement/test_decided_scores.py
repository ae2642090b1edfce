"""A placement has its scores by plugin for every method that finds its slot."""

from __future__ import annotations

import time
from dataclasses import replace

from scheduling.placement.framework.configuration import read_configuration
from scheduling.placement.framework.cycle import VerdictOutcome, run_cycle
from scheduling.placement.framework.model import Gang, Job, Task
from tests.scheduling.placement.inline_plugins import InlinePlugin, job, node, run_with, snapshot, units


def half_for_all(ssn):
    ssn.add_node_order_fn(lambda *_: 0.5)


def ranked(ssn):
    ssn.add_node_order_fn(
        lambda _, __, state: state.free[0] / state.capacity[0],
        batch=lambda _, __, nodes: nodes.free[:, 0] / nodes.capacity[:, 0],
        ranks_by=lambda _: None,
    )


def test_a_spread_job_has_the_scores_of_all_its_tasks():
    tasks = tuple(Task(f"t{place}", units(300)) for place in range(3))
    gang = Job("gang", "lab", tasks, gang=Gang.SPREAD)
    cluster = snapshot([node(name) for name in "abc"], [gang])
    (verdict,) = run_with(cluster, InlinePlugin(name="half", on_open=half_for_all)).verdicts
    assert verdict.outcome is VerdictOutcome.PLACED
    assert verdict.scores["half"] == 1.5
    assert verdict.scores["binpack"] > 0


def test_scores_are_recorded_only_on_request():
    gang = Job("gang", "lab", (Task("x", units(1)), Task("y", units(1))), gang=Gang.SPREAD)
    cluster = snapshot([node("a")], [gang, replace(job("held"), held_on="a")])
    cycle = run_cycle(cluster, read_configuration(""), keep_scores=False)
    assert [dict(verdict.scores) for verdict in cycle.verdicts] == [{}, {}]


def test_a_job_with_held_space_has_the_scores_of_its_slot_at_placement():
    jobs = [job(name, held_on="a", created=number) for number, name in enumerate("xy")]
    cycle = run_with(
        snapshot([node("a"), node("b")], jobs), InlinePlugin(name="ranked", on_open=ranked), names=()
    )
    assert [verdict.outcome for verdict in cycle.verdicts] == [VerdictOutcome.PLACED] * 2
    assert [verdict.scores["ranked"] for verdict in cycle.verdicts] == [1.0, 0.75]


def test_space_that_is_not_free_yet_has_no_scores():
    full = node("a", taken=units(400))
    (verdict,) = run_with(snapshot([full], [job("x", held_on="a")])).verdicts
    assert (verdict.outcome, dict(verdict.scores)) == (VerdictOutcome.HELD, {})


def test_event_handlers_are_timed():
    def on_open(ssn):
        ssn.add_event_handler(allocate=lambda *_: time.sleep(0.3), deallocate=lambda *_: None)

    cycle = run_with(snapshot([node("a")], [job("j")]), InlinePlugin(name="slow", on_open=on_open))
    assert cycle.ssn.timings.seconds["slow"] >= 0.3
    assert cycle.ssn.timings.seconds["resources"] < 0.3
