"""Shapes with the same ranking of slots share one order: faster, with the same result."""

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
from tests.scheduling.placement.inline_plugins import (
    ConfigurationWithInlinePlugins,
    InlinePlugin,
    job,
    node,
    run_with,
    snapshot,
    units,
)
from tests.scheduling.placement.random_snapshots import (
    BINPACKING,
    CONFIGURATIONS,
    SPREADING,
    busy_snapshots,
    nodes_of_one_size,
)
from tests.scheduling.placement.scenario import copy_of

# Powers of two, so that sums of shares are exact.
SIZE = units(512, 1024, 0, 0)


def add_plain_predicate(ssn: SchedulingSession) -> None:
    """A predicate without options: it must be called for every node."""
    ssn.add_predicate_fn(lambda *_: None)


def evaluate_every_node(cluster: Snapshot, configuration: Configuration) -> Cycle:
    plain = InlinePlugin(name="asking", on_open=add_plain_predicate)
    return run_cycle(
        cluster, ConfigurationWithInlinePlugins(configuration.actions, configuration.choices, (plain,))
    )


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(
    st.sampled_from([0, 2]).flatmap(
        lambda gpus: busy_snapshots(max_nodes=6, max_jobs=9, slots=nodes_of_one_size(gpus))
    ),
    CONFIGURATIONS,
)
def test_a_shared_order_gives_the_same_result_as_evaluating_every_slot(cluster, configuration):
    result = as_result(run_cycle(cluster, configuration))
    assert result == as_result(evaluate_every_node(copy_of(cluster), configuration))


def crowded_snapshot(seed: int) -> Snapshot:
    """Many partly used slots of one size, and more jobs than fit."""
    random = Random(seed)
    slots = [
        Node(
            f"s{number:02}",
            units(512, 1024, 0, 0),
            spot=random.random() < 0.3,
            taken=(random.randrange(400), 0, 0, 0),
        )
        for number in range(40)
    ]
    jobs = [
        job(
            f"j{number}",
            random.choice((0.5, 1, 2, 4)),
            random.choice((0, 1, 3)),
            preemptible=random.random() < 0.5,
        )
        for number in range(150)
    ]
    return snapshot(slots, jobs)


@pytest.mark.parametrize(
    "limits",
    [{"CHECKED_SINGLY": 48}, {"CHECKED_SINGLY": 1}, {"CHECKED_SINGLY": 0}, {"MAX_SINGLE_MOVES": 0}],
    ids=str,
)
@pytest.mark.parametrize("configuration", [BINPACKING, SPREADING], ids=["binpack", "spread"])
def test_a_shared_order_gives_the_same_result_with_many_candidates(configuration, limits):
    for seed in range(4):
        with patch.multiple(node_order, **limits):
            result = as_result(run_cycle(crowded_snapshot(seed), configuration))
        assert result == as_result(evaluate_every_node(crowded_snapshot(seed), configuration))
        assert len({verdict["outcome"] for verdict in result["verdicts"]}) > 1
        assert result["clipped_scores"] == {}


def candidate_types(cluster: Snapshot, *inline_plugins: InlinePlugin) -> set[type]:
    ssn = SchedulingSession(cluster)
    ssn.open([*BINPACKING.plugins(), *inline_plugins])
    return {type(ssn.candidates(each.whole, each)) for each in cluster.jobs}


def test_shapes_share_an_order_if_every_plugin_supports_it():
    small, large, on_gpus = job("small"), job("large", 3), job("on gpus", gpu=1)
    slots = [node("a", gpu=1), node("b", gpu=1)]
    assert candidate_types(snapshot(slots, [small, large])) == {RankedCandidates}
    assert candidate_types(snapshot(slots, [on_gpus])) == {EvaluatedCandidates}
    assert candidate_types(snapshot([*slots, node("c", 9)], [small])) == {EvaluatedCandidates}
    plain = InlinePlugin(name="asking", on_open=add_plain_predicate)
    assert candidate_types(snapshot(slots, [small]), plain) == {EvaluatedCandidates}


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
    slots = [node("a", 4, taken=units(350)), node("b", 4)]
    jobs = [job("large", 1, created=1), job("small", 0.5, created=2)]
    cycle = run_with(snapshot(slots, jobs))
    assert [verdict.parts[0].node for verdict in cycle.verdicts] == ["b", "a"]


def test_a_job_gets_its_own_scores():
    slots = [node("a", 4, 8, taken=units(200))]
    cycle = run_with(snapshot(slots, [job("one", 1, created=1), job("other", 0.5, created=2)]))
    assert [verdict.scores for verdict in cycle.verdicts] == [
        {"binpack": pytest.approx(0.375)}, {"binpack": pytest.approx(0.4375)},
    ]  # fmt: skip


def test_a_score_that_stops_being_a_number_is_ignored():
    def on_open(ssn: SchedulingSession) -> None:
        ssn.add_node_order_fn(
            lambda _, __, state: float("nan") if state.free[0] < 400 else 1.0, ranks_by=lambda _: None
        )

    jobs = [job(f"j{number}", created=number) for number in range(4)]
    cycle = run_with(snapshot([node("a"), node("b")], jobs), InlinePlugin(name="broken", on_open=on_open))
    assert [verdict.parts[0].node for verdict in cycle.verdicts] == ["a", "a", "a", "a"]
    assert [list(verdict.scores) for verdict in cycle.verdicts][1:] == [["binpack"]] * 3
    assert cycle.ssn.failures.by_plugin == {"broken": "ValueError: a score is not a number"}
