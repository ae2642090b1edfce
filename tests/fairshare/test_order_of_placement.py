"""The fairshare plugin places sessions with less usage first within a priority."""

from __future__ import annotations

import pytest

from fairshare.services.policies import save_policy, set_weights, warnings_for
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import Priority
from scheduling.models import Pool
from scheduling.selectors.fair_share import factors_in_pool
from tests.fairshare.services.test_calculation import key
from tests.support.fairshare_setup import FairShareStage
from tests.support.fake_runtime import FakeRuntime
from tests.support.fleet import Fleet

WITHOUT = "actions: [allocate]\nplugins: [{name: resources}, {name: priority}, {name: submit_order}]\n"


@pytest.fixture
def one_lab_fleet(stage: FairShareStage) -> Fleet:
    """One slot with capacity for one lab, in a pool where ann has usage and cyd has none."""
    Pool.objects.filter(pk=stage.pool.pk).update(cpu_cores=4, memory_gb=4, storage_gb=10, max_slots=1)
    session = stage.start("ann", "ccna")
    stage.clock.advance(hours=2)
    stage.stop(session)
    stage.run("record", "aggregate", "calculate")
    fleet = Fleet(stage.pool, stage.clock, FakeRuntime(stage.clock))
    fleet.slot()
    return fleet


def placed(*sessions):
    for session in sessions:
        session.refresh_from_db()
    return [session.status == S.SCHEDULED for session in sessions]


def test_the_person_with_less_usage_is_placed_first(stage, one_lab_fleet):
    first, second = stage.request("ann", "ccna"), stage.request("cyd", "soc")
    one_lab_fleet.tick_without_errors()
    assert placed(first, second) == [False, True]


def test_priority_goes_before_fair_share(stage, one_lab_fleet):
    first, second = stage.request("ann", "ccna", priority=Priority.HIGH), stage.request("cyd", "soc")
    one_lab_fleet.tick_without_errors()
    assert placed(first, second) == [True, False]


def test_a_pool_without_the_plugin_places_by_age_and_shows_a_warning(stage, one_lab_fleet):
    Pool.objects.filter(pk=stage.pool.pk).update(scheduler=WITHOUT)
    first = stage.request("ann", "ccna")
    stage.clock.advance(seconds=1)
    second = stage.request("cyd", "soc")
    one_lab_fleet.tick_without_errors()
    assert placed(first, second) == [True, False]
    _, warnings = save_policy(
        pool=one_lab_fleet.reload_pool(), half_life_days=3, reason="exams", actor=SYSTEM
    )
    assert warnings == warnings_for(one_lab_fleet.pool) != []


def test_weights_reach_the_scheduler(stage, one_lab_fleet):
    set_weights(pool=stage.pool, weights={key(stage, "academy"): 4, key(stage, "ccna"): 2}, actor=SYSTEM)
    stage.run("calculate")
    found = factors_in_pool(stage.pool)
    ann = found[(stage.people["ann"].pk, stage.projects["ccna"].pk)]
    assert ann.weights == (4.0, 2.0, 1.0)
    cyd = found[(stage.people["cyd"].pk, stage.projects["soc"].pk)]
    assert (cyd.domain, cyd.weights) == (1.0, (1.0, 1.0, 1.0))
