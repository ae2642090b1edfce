"""Shapes that rank slots alike share one order: faster, with the same result."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.placement.framework import node_order
from scheduling.placement.framework.candidates import EvaluatedCandidates, RankedCandidates
from scheduling.placement.framework.configuration import Configuration
from scheduling.placement.framework.cycle import Cycle, run_cycle
from scheduling.placement.framework.model import Node, Snapshot
from scheduling.placement.framework.results import as_result
from scheduling.placement.framework.session import SchedulingSession
from tests.scheduling.placement.inline_plugins import Inline, Mixed, job, node, run_with, snapshot
from tests.scheduling.placement.random_snapshots import (
    CONFIGURATIONS,
    EVENLY,
    PACKED,
    busy_snapshots,
    nodes_of_one_size,
)
from tests.scheduling.placement.scenario import copied

# Powers of two, so that sums of shares are exact.
SIZE = (512, 1024, 0, 0)


def asks_everywhere(ssn: SchedulingSession) -> None:
    """A predicate without options: it must be called for every node."""
    ssn.add_predicate_fn(lambda *_: None)


def surveyed(world: Snapshot, configuration: Configuration) -> Cycle:
    asking = Inline(name="asking", opens=asks_everywhere)
    return run_cycle(world, Mixed(configuration.actions, configuration.choices, (asking,)))


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(
    st.sampled_from([0, 2]).flatmap(
        lambda gpus: busy_snapshots(max_nodes=6, max_jobs=9, slots=nodes_of_one_size(gpus))
    ),
    CONFIGURATIONS,
)
def test_a_shared_order_decides_as_asking_about_every_slot_does(world, configuration):
    found = as_result(run_cycle(world, configuration))
    assert found == as_result(surveyed(copied(world), configuration))


def crowded(seed: int) -> Snapshot:
    """Many partly used slots of one size, and more jobs than fit."""
    chance = Random(seed)
    slots = [
        Node(
            f"s{number:02}",
            (512, 1024, 0, 0),
            spot=chance.random() < 0.3,
            taken=(chance.randrange(400), 0, 0, 0),
        )
        for number in range(40)
    ]
    jobs = [
        job(
            f"j{number}",
            chance.choice((0.5, 1, 2, 4)),
            chance.choice((0, 1, 3)),
            preemptible=chance.random() < 0.5,
        )
        for number in range(150)
    ]
    return snapshot(slots, jobs)


@pytest.mark.parametrize("limits", [{"HEAD": 48}, {"HEAD": 1}, {"HEAD": 0}, {"MANY": 0}], ids=str)
@pytest.mark.parametrize("configuration", [PACKED, EVENLY], ids=["packed", "evenly"])
def test_so_it_does_where_there_is_much_to_choose_from(configuration, limits):
    for seed in range(4):
        with patch.multiple(node_order, **limits):
            found = as_result(run_cycle(crowded(seed), configuration))
        assert found == as_result(surveyed(crowded(seed), configuration))
        assert len({verdict["outcome"] for verdict in found["verdicts"]}) > 1
        assert found["clipped_scores"] == {}


def kind_of_candidates(world: Snapshot, *more: Inline) -> set[type]:
    ssn = SchedulingSession(world)
    ssn.open([*PACKED.plugins(), *more])
    return {type(ssn.candidates(each.whole, each)) for each in world.jobs}


def test_shapes_share_an_order_when_every_plugin_promises_it():
    small, large, on_gpus = job("small"), job("large", 3), job("on gpus", gpu=1)
    slots = [node("a", gpu=1), node("b", gpu=1)]
    assert kind_of_candidates(snapshot(slots, [small, large])) == {RankedCandidates}
    assert kind_of_candidates(snapshot(slots, [on_gpus])) == {EvaluatedCandidates}
    assert kind_of_candidates(snapshot([*slots, node("c", 9)], [small])) == {EvaluatedCandidates}
    asking = Inline(name="asking", opens=asks_everywhere)
    assert kind_of_candidates(snapshot(slots, [small]), asking) == {EvaluatedCandidates}


def test_placements_of_one_shape_affect_the_others():
    jobs = [job(f"j{number}", 1 + number % 2, created=number) for number in range(6)]
    cycle = run_with(snapshot([node("a", 4), node("b", 4)], jobs))
    assert [verdict.parts and verdict.parts[0].node for verdict in cycle.verdicts] == [
        "a",
        "a",
        "a",
        "b",
        "b",
        (),
    ]


def test_a_smaller_task_fits_where_no_task_fitted_before():
    slots = [node("a", 4, taken=(350, 0, 0, 0)), node("b", 4)]
    jobs = [job("large", 1, created=1), job("small", 0.5, created=2)]
    cycle = run_with(snapshot(slots, jobs))
    assert [verdict.parts[0].node for verdict in cycle.verdicts] == ["b", "a"]


def test_a_job_gets_its_own_scores():
    slots = [node("a", 4, 8, taken=(200, 0, 0, 0))]
    cycle = run_with(snapshot(slots, [job("one", 1, created=1), job("other", 0.5, created=2)]))
    assert [verdict.scores for verdict in cycle.verdicts] == [
        {"binpack": pytest.approx(0.375)}, {"binpack": pytest.approx(0.4375)},
    ]  # fmt: skip


def test_a_score_that_stops_being_a_number_is_left_out():
    def opens(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(
            lambda _, __, state: float("nan") if state.free[0] < 400 else 1.0, ranks_by=lambda _: None
        )

    jobs = [job(f"j{number}", created=number) for number in range(4)]
    cycle = run_with(snapshot([node("a"), node("b")], jobs), Inline(name="broken", opens=opens))
    assert [verdict.parts[0].node for verdict in cycle.verdicts] == ["a", "a", "a", "a"]
    assert [list(verdict.scores) for verdict in cycle.verdicts][1:] == [["binpack"]] * 3
    assert cycle.ssn.failures.by_plugin == {"broken": "ValueError: a score is not a number"}
