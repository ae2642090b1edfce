"""Fair-share calculation in the database: from buckets to the scheduler."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from fairshare.arithmetic.policy import Policy
from fairshare.arithmetic.units import UNITS_AN_HOUR
from fairshare.models import FairShare, FairShareCalculation, UsageBucket
from fairshare.models.levels import ROOT, Level
from fairshare.selectors.level_factors import pool_level_factors
from fairshare.selectors.previews import preview_fair_share
from fairshare.selectors.trees import SubjectKey, decayed_usage, policy_of, weights_of, window
from fairshare.services.calculation import calculate_pool
from fairshare.services.policies import changed_policy, save_policy, set_weights, warnings_for
from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import ChangeLog, Membership
from scheduling.coordination.coordinator import coordinator
from scheduling.selectors import fair_share
from scheduling.selectors.fair_share import LevelFactors, factors_for, factors_in_pool
from tests.support.factories import make_person


@pytest.fixture
def used(stage):
    """`used(person, project, core-hours, days ago)` creates recorded usage."""

    def add(person, project, hours, days_ago=0, **resources):
        amounts = dict.fromkeys(RESOURCE_NAMES, 0) | {"cpu_cores": hours, **resources}
        UsageBucket.objects.create(
            day=stage.clock().date() - timedelta(days=days_ago),
            pool="cml-eu",
            level=Level.USER,
            subject_id=stage.people[person].pk,
            parent_id=stage.projects[project].pk,
            **{name: int(value * UNITS_AN_HOUR) for name, value in amounts.items()},
        )

    return add


def key(stage, name, project=None):
    if name in stage.people:
        return SubjectKey("user", stage.people[name].pk, stage.projects[project].pk)
    if name in stage.projects:
        return SubjectKey("project", stage.projects[name].pk, stage.projects[name].domain_id)
    domain = next(each.domain for each in stage.projects.values() if each.domain.name == name)
    return SubjectKey("domain", domain.pk, ROOT)


def share(stage, name, project=None):
    level, subject, parent = key(stage, name, project)
    return FairShare.objects.get(pool=stage.pool, level=level, subject_id=subject, parent_id=parent)


def test_without_usage_all_people_have_factor_1(stage):
    stage.run("calculate")
    assert set(FairShare.objects.values_list("factor", "rank")) == {(1.0, 1)}
    assert FairShare.objects.filter(pool=stage.pool).count() == 2 + 3 + 4
    assert pool_level_factors(stage.pool) == {}


def test_usage_lowers_the_rank(stage, used):
    used("ann", "ccna", 30)
    used("cyd", "soc", 10)
    calculate_pool(stage.pool, now=stage.clock())
    ann, bob = share(stage, "ann", "ccna"), share(stage, "bob", "ccna")
    assert ann.actual_usage == 0.75
    assert ann.norm_share == 1 / 2 / 2 / 2
    assert (bob.rank, ann.rank) == (3, 4)
    assert share(stage, "soc").rank < share(stage, "ccna").rank
    assert share(stage, "academy").factor < share(stage, "security").factor


def test_a_row_stores_the_inputs_of_its_factor(stage, used):
    used("ann", "ccna", 8, memory_gb=4, storage_gb=2, gpu=1)
    set_weights(pool=stage.pool, weights={key(stage, "ccna"): 3}, actor=SYSTEM)
    calculation = calculate_pool(stage.pool, now=stage.clock())
    ann = share(stage, "ann", "ccna")
    assert (ann.cpu_hours, ann.memory_hours, ann.storage_hours, ann.gpu_hours) == (8, 4, 2, 1)
    assert ann.usage == 8 + 4 * 0.25 + 8
    assert (ann.weight, ann.weight_source, ann.effective_weight) == (None, "policy", 1.0)
    ccna = share(stage, "ccna")
    assert (ccna.weight, ccna.weight_source, ccna.effective_weight, ccna.share) == (3.0, "own", 3.0, 0.75)
    assert (calculation.first_day, calculation.last_day) == (date(2026, 2, 3), date(2026, 3, 2))
    assert calculation.policy["half_life_days"] == 7.0
    assert calculation.at == stage.clock()


def test_usage_decays_by_its_age(stage, used):
    used("ann", "ccna", 16, days_ago=7)
    used("ann", "ccna", 16)
    rows = decayed_usage(stage.pool, Policy(), now=stage.clock())
    found = {(row.user, row.project): row.amounts[0] for row in rows if row.is_member}
    assert found.pop((stage.people["ann"].pk, stage.projects["ccna"].pk)) == pytest.approx(24)
    assert set(found.values()) == {0.0}


@pytest.mark.parametrize(("days", "factor_is_one"), [(27, False), (28, True)])
def test_usage_outside_the_window_does_not_count(days, factor_is_one, stage, used):
    used("ann", "ccna", 100, days_ago=days)
    calculate_pool(stage.pool, now=stage.clock())
    assert (share(stage, "ann", "ccna").factor == 1.0) == factor_is_one


def test_factors_recover_without_usage(stage, used):
    used("ann", "ccna", 100)
    stage.run("calculate")
    assert share(stage, "ann", "ccna").factor < 1
    stage.clock.advance(days=28)
    stage.run("calculate")
    assert set(FairShare.objects.values_list("factor", flat=True)) == {1.0}


def test_a_policy_takes_effect_at_the_next_calculation_without_a_rebuild(stage, used):
    used("ann", "ccna", 8)
    used("cyd", "soc", 8, days_ago=1)
    calculate_pool(stage.pool, now=stage.clock())
    before = share(stage, "cyd", "soc").actual_usage
    save_policy(pool=stage.pool, half_life_days=1, reason="exams", actor=SYSTEM)
    assert share(stage, "cyd", "soc").actual_usage == before
    calculate_pool(stage.pool, now=stage.clock())
    assert share(stage, "cyd", "soc").actual_usage == pytest.approx(4 / 12)


def test_usage_of_a_former_member_stays_with_the_project(stage, used):
    used("bob", "ccna", 10)
    used("cyd", "soc", 10)
    calculate_pool(stage.pool, now=stage.clock())
    Membership.objects.filter(user=stage.people["bob"]).delete()
    calculate_pool(stage.pool, now=stage.clock())
    assert not FairShare.objects.filter(subject_id=stage.people["bob"].pk, pool=stage.pool).exists()
    assert share(stage, "ccna").usage == 10
    assert share(stage, "soc").actual_usage == 0.5


def test_other_pools_do_not_count(stage, used):
    used("ann", "ccna", 10)
    stage.run("calculate")
    assert set(FairShare.objects.exclude(pool=stage.pool).values_list("factor", flat=True)) == {1.0}


def test_the_scheduler_reads_level_factors_by_person_and_project(stage, used):
    used("ann", "ccna", 10)
    calculate_pool(stage.pool, now=stage.clock())
    ann, bob = stage.people["ann"].pk, stage.people["bob"].pk
    ccna, ccnp = stage.projects["ccna"].pk, stage.projects["ccnp"].pk
    found = factors_in_pool(stage.pool)
    # academy has all usage and half of the weights, a ratio of 2; likewise ccna, and ann in it.
    assert found[(ann, ccna)] == LevelFactors(1 / 3, 1 / 3, 1 / 3)
    assert found[(bob, ccna)] == LevelFactors(1 / 3, 1 / 3, 1.0)
    assert found[(ann, ccnp)] == LevelFactors(1 / 3, 1.0, 1.0)
    assert (stage.people["cyd"].pk, stage.projects["soc"].pk) not in found


def test_the_classic_order_has_one_level_factor(stage, used):
    save_policy(pool=stage.pool, order="classic", reason="exams", actor=SYSTEM)
    used("ann", "ccna", 10)
    calculate_pool(stage.pool, now=stage.clock())
    found = factors_in_pool(stage.pool)[(stage.people["ann"].pk, stage.projects["ccna"].pk)]
    assert (found.domain, found.project) == (1.0, 1.0)
    assert found.user == share(stage, "ann", "ccna").factor


def test_a_new_member_ranks_by_the_usage_of_the_project(stage, used):
    used("ann", "ccna", 10)
    calculate_pool(stage.pool, now=stage.clock())
    new = make_person("new")
    Membership.objects.create(project=stage.projects["ccna"], user=new)
    assert pool_level_factors(stage.pool)[(new.pk, stage.projects["ccna"].pk)] == LevelFactors(
        1 / 3, 1 / 3, 1.0
    )
    for user, project in pool_level_factors(stage.pool):
        one = (stage.pool.pk, user, project)
        assert factors_for([one])[one][:3] == pool_level_factors(stage.pool)[(user, project)][:3]


def test_level_factors_use_at_most_four_queries(stage, used):
    used("ann", "ccna", 10)
    calculate_pool(stage.pool, now=stage.clock())
    with CaptureQueriesContext(connection) as queries:
        pool_level_factors(stage.pool)
    assert len(queries) <= 4


def test_a_pool_that_fails_does_not_stop_the_others(stage, monkeypatch):
    from fairshare import observers as calculation

    real = calculation.calculate_pool

    def fail_for_one(pool, **fields):
        if pool.name == "cml-eu":
            raise ValueError("odd")
        return real(pool, **fields)

    monkeypatch.setattr(calculation, "calculate_pool", fail_for_one)
    (result,) = stage.run("calculate")
    assert (result.success_count, result.failure_count, result.error) == (1, 1, "ValueError: odd")
    assert FairShareCalculation.objects.get().pool.name == "cml-us"


def test_usage_is_relative_to_the_capacity_of_the_pool(stage, used):
    """Four slots of 10,000 cores; 8 h of Monday are over."""
    save_policy(
        pool=stage.pool,
        normalisation="capacity",
        lookback_days=1,
        resource_weights={"memory_gb": 0, "gpu": 0},
        reason="exams",
        actor=SYSTEM,
    )
    used("ann", "ccna", 32_000)
    calculate_pool(stage.pool, now=stage.clock())
    assert share(stage, "ann", "ccna").effective_usage == pytest.approx(32_000 / (4 * 10_000 * 8))


# --- policies and weights --------------------------------------------------------------------------------


def test_a_pool_without_a_policy_has_the_defaults(stage):
    assert policy_of(stage.pool) == Policy()
    assert window(Policy(), stage.clock()) == (date(2026, 2, 3), date(2026, 3, 2))


def test_a_policy_is_saved_with_its_reason(stage, as_admin):
    row, warnings = save_policy(
        pool=stage.pool, half_life_days=3.5, order="classic", actor=as_admin, reason="exams"
    )
    assert warnings == []
    assert policy_of(stage.pool) == Policy(half_life_days=3.5, order="classic")
    entry = ChangeLog.objects.get(event="fair_share.policy_changed")
    assert (entry.actor, entry.reason, entry.object_id) == ("ada", "exams", str(row.pk))
    assert entry.after == {"half_life_days": 3.5, "order": "classic"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"half_life_days": 0}, "half_life_days"),
        ({"half_life_days": float("nan")}, "half_life_days"),
        ({"lookback_days": 0}, "lookback_days"),
        ({"default_weight": -2}, "default_weight"),
        ({"resource_weights": {"ram": 1}}, "resource_weights"),
        ({"mood": "good"}, "mood"),
    ],
)
def test_an_invalid_policy_is_not_stored(changes, field, stage):
    with pytest.raises(InvalidInput) as refused:
        save_policy(pool=stage.pool, reason="exams", actor=SYSTEM, **changes)
    assert list(refused.value.fields) == [field]
    assert policy_of(stage.pool) == Policy()
    assert not ChangeLog.objects.filter(event="fair_share.policy_changed").exists()


def test_a_policy_without_the_plugin_gives_a_warning(stage, monkeypatch):
    monkeypatch.setattr(fair_share, "is_ordered_by_fair_share", lambda _: False)
    _, warnings = save_policy(pool=stage.pool, half_life_days=3, reason="exams", actor=SYSTEM)
    assert warnings == warnings_for(stage.pool)
    assert "does not use the plugin “fairshare”" in warnings[0]
    assert policy_of(stage.pool).half_life_days == 3


def test_weights_are_set_together(stage, as_admin):
    weights = {key(stage, "academy"): 4, key(stage, "ccna"): "2.5", key(stage, "ann", "ccna"): 1}
    assert set_weights(pool=stage.pool, weights=weights, actor=as_admin, reason="new term") == 3
    assert share(stage, "ccna").weight == 2.5
    messages = set(
        ChangeLog.objects.filter(event="fair_share.weight_changed").values_list("message", "reason")
    )
    assert ("weight of academy / ccna in cml-eu: the default → 2.5", "new term") in messages
    assert set_weights(pool=stage.pool, weights=weights, actor=as_admin) == 0
    assert set_weights(pool=stage.pool, weights={key(stage, "ccna"): None}, actor=as_admin) == 1
    assert share(stage, "ccna").weight is None


@pytest.mark.parametrize("bad", [1e-7, -1, "nan", "inf", "much"])
def test_one_invalid_weight_stores_none(bad, stage):
    with pytest.raises(InvalidInput, match="ccna"):
        set_weights(
            pool=stage.pool, weights={key(stage, "academy"): 4, key(stage, "ccna"): bad}, actor=SYSTEM
        )
    assert not FairShare.objects.filter(weight__isnull=False).exists()


def test_a_weight_of_a_non_member_is_rejected(stage):
    not_a_member = SubjectKey("user", stage.people["cyd"].pk, stage.projects["ccna"].pk)
    with pytest.raises(InvalidInput, match="not in the tree"):
        set_weights(pool=stage.pool, weights={not_a_member: 2}, actor=SYSTEM)


def test_a_calculation_keeps_the_weights(stage, used):
    set_weights(pool=stage.pool, weights={key(stage, "soc"): 9}, actor=SYSTEM)
    used("cyd", "soc", 1)
    stage.run("calculate", "calculate")
    assert share(stage, "soc").weight == 9


def test_the_database_rejects_an_invalid_weight(stage):
    stage.run("calculate")
    with pytest.raises(IntegrityError, match="share_weight_in_range"), transaction.atomic():
        FairShare.objects.update(weight=-1)


def test_weights_0_and_parent_are_stored_and_take_effect(stage, used):
    """ccna has no share of its own: ann and bob compete with ccnp; cyd has no priority."""
    weights = {key(stage, "ccna"): "parent", key(stage, "cyd", "soc"): 0, key(stage, "bob", "ccna"): 3}
    assert set_weights(pool=stage.pool, weights=weights, actor=SYSTEM) == 3
    assert set_weights(pool=stage.pool, weights=weights, actor=SYSTEM) == 0
    assert weights_of(stage.pool) == weights
    messages = ChangeLog.objects.filter(event="fair_share.weight_changed").values_list("message", flat=True)
    assert "weight of academy / ccna in cml-eu: the default → parent" in set(messages)
    used("ann", "ccna", 10)
    used("bob", "ccna", 20)
    used("cyd", "soc", 30)
    stage.run("calculate", "calculate")
    assert weights_of(stage.pool) == weights
    # ann 1, bob 3, ccnp 1
    assert [share(stage, *subject).share for subject in (("ann", "ccna"), ("bob", "ccna"), ("ccnp",))] == [
        0.2,
        0.6,
        0.2,
    ]
    assert (share(stage, "cyd", "soc").factor, share(stage, "cyd", "soc").usage) == (0, 30)
    ann, bob, cyd = (stage.people[name].pk for name in ("ann", "bob", "cyd"))
    ccna, soc = stage.projects["ccna"].pk, stage.projects["soc"].pk
    found = factors_in_pool(stage.pool)
    # academy 30 of 60 for half of the weights; in it ann (10/30)/.2 and bob (20/30)/.6
    assert found[(ann, ccna)][:3] == pytest.approx((1 / 2, 1 / (1 + 1 / 0.6), 1.0))
    assert found[(bob, ccna)][:3] == pytest.approx((1 / 2, 1 / (1 + 2 / 1.8), 1.0))
    assert found[(cyd, soc)].user == 0
    assert found[(ann, ccna)].joins == (False, True)
    save_policy(pool=stage.pool, order="classic", reason="exams", actor=SYSTEM)
    calculate_pool(stage.pool, now=stage.clock())
    assert factors_in_pool(stage.pool)[(ann, ccna)].joins == (False, False)


def test_a_half_life_under_a_day_decays_by_the_hour(stage):
    """Ann held 4 cores from 8 to 10, Bob from 14 to 15. At 15:30 with a half-life of 6 hours:

    ann 4 · (2^-(7/6) + 2^-(6/6)), bob 4 · 2^-(1/6) core-hours; the buckets of the day hold 8 and 4.
    """
    save_policy(pool=stage.pool, half_life_days=0.25, reason="exams", actor=SYSTEM)
    session = stage.start("ann", "ccna")
    stage.clock.advance(hours=2)
    stage.step(session, SessionStatus.CANCELLED)
    stage.clock.advance(hours=4)
    session = stage.start("bob", "ccna")
    stage.clock.advance(hours=1)
    stage.step(session, SessionStatus.CANCELLED)
    stage.clock.advance(minutes=30)
    stage.run("record", "aggregate", "calculate")
    assert share(stage, "ann", "ccna").cpu_hours == pytest.approx(4 * (2 ** -(7 / 6) + 2 ** -(6 / 6)))
    assert share(stage, "bob", "ccna").cpu_hours == pytest.approx(4 * 2 ** -(1 / 6))
    assert share(stage, "ccna").cpu_hours == pytest.approx(
        share(stage, "ann", "ccna").cpu_hours + share(stage, "bob", "ccna").cpu_hours
    )
    stage.clock.advance(days=8)
    stage.run("calculate")
    assert share(stage, "ann", "ccna").factor == 1


def test_the_dampening_factor_takes_effect(stage, used):
    used("ann", "ccna", 10)
    calculate_pool(stage.pool, now=stage.clock())
    before = share(stage, "ann", "ccna").factor
    save_policy(pool=stage.pool, dampening_factor=5, reason="exams", actor=SYSTEM)
    calculate_pool(stage.pool, now=stage.clock())
    assert share(stage, "ann", "ccna").factor == pytest.approx(before ** (1 / 5))


def test_a_stored_weight_below_the_limit_does_not_stop_the_calculation(stage, used):
    stage.run("calculate")
    branch = [share(stage, *subject).pk for subject in (("academy",), ("ccna",), ("ann", "ccna"))]
    FairShare.objects.filter(pk__in=branch).update(weight=1e-200)
    used("ann", "ccna", 10)
    (result,) = stage.run("calculate")
    assert (result.success_count, result.failure_count) == (2, 0)
    assert 0 < share(stage, "ann", "ccna").factor < 1


# --- previews ----------------------------------------------------------------------------------------------


def test_a_preview_lists_rank_changes_and_writes_nothing(stage, used):
    used("ann", "ccna", 20)
    used("cyd", "soc", 30)
    for person, project in (("ann", "ccna"), ("cyd", "soc")):
        stage.request(person, project)
    before = list(FairShare.objects.values())
    found = preview_fair_share(stage.pool, now=stage.clock(), weights={key(stage, "security"): 9})
    assert [(move.name, move.parent_name, move.rank_before, move.rank_after) for move in found.up] == [
        ("cyd", "security / soc", 4, 1)
    ]
    assert {move.name for move in found.down} == {"ann", "bob"}
    assert (found.up_count, found.down_count, found.same_count) == (1, 3, 0)
    assert (found.waiting_moved, found.waiting) == (2, 2)
    assert found.text == "Rank changes: 1 up, 3 down. Waiting sessions with a new position: 2 of 2."
    assert list(FairShare.objects.values()) == before


def test_a_policy_is_previewed(stage, used):
    used("ann", "ccna", 20, days_ago=10)
    used("cyd", "soc", 10)
    changed = changed_policy(policy_of(stage.pool), {"lookback_days": 5})
    found = preview_fair_share(stage.pool, now=stage.clock(), policy=changed)
    assert [(move.name, move.parent_name, move.rank_after) for move in found.up] == [
        ("ann", "academy / ccna", 1),
        ("bob", "academy / ccna", 1),
    ]
    assert policy_of(stage.pool).lookback_days == 28


def test_a_preview_without_changes_has_no_rank_changes(stage, used):
    used("ann", "ccna", 20)
    found = preview_fair_share(stage.pool, now=stage.clock())
    assert (found.up_count, found.down_count) == (0, 0)


def test_the_lag_is_the_age_of_the_factors_and_is_shown_when_it_exceeds_the_interval(
    stage, client, viewer, time_machine
):
    observer = coordinator.observers["fair-share-calculation"]
    stage.run("calculate")
    client.force_login(viewer)
    for age, is_up_to_date in ((observer.interval, True), (observer.interval + timedelta(seconds=1), False)):
        assert observer.lag(stage.clock() + age) == age
        time_machine.move_to(stage.clock() + age, tick=False)
        page = client.get("/observers/fair-share-calculation/").content.decode()
        assert ("<dd>up to date</dd>" in page) is is_up_to_date
