"""Fair-share arithmetic: worked examples and properties."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairshare.arithmetic.factor import (
    capacity_hours,
    capacity_usage,
    decay,
    decayed_days,
    decayed_hours,
    effective_usage,
    fair_share_factor,
    level_factor,
    remove_rounding_noise,
    usage_ratio,
)
from fairshare.arithmetic.policy import Policy, policy_problems, weight_problem
from fairshare.arithmetic.tree import FairShareResult, Subject, calculate, compared_factors
from lcm.domain.resources import RESOURCE_NAMES

NONE = (0.0, 0.0, 0.0, 0.0)


def cpu(hours: float) -> tuple[float, ...]:
    return (float(hours), 0.0, 0.0, 0.0)


def tree(*rows: tuple[str, float | str | None, float], **options) -> dict[str, FairShareResult]:
    """`tree(("a/b/u", weight, core-hours), …)` returns results by path; missing parents are added."""
    named = {path: (weight, usage) for path, weight, usage in rows}
    for path in list(named):
        for depth in range(1, path.count("/") + 1):
            named.setdefault("/".join(path.split("/")[:depth]), (None, 0.0))
    subjects = [
        Subject(tuple(path.split("/")), weight, cpu(usage)) for path, (weight, usage) in named.items()
    ]
    policy = options.pop("policy", Policy())
    return {"/".join(result.path): result for result in calculate(subjects, policy, **options)}


@pytest.mark.parametrize(
    ("age", "half_life", "left"), [(0, 7, 1.0), (7, 7, 0.5), (14, 7, 0.25), (28, 7, 0.0625), (1, 1, 0.5)]
)
def test_usage_halves_with_every_half_life(age, half_life, left):
    assert decay(age, half_life) == pytest.approx(left)


def test_the_window_has_the_days_of_the_policy():
    assert len(decayed_days(28, 7)) == 28
    assert decayed_days(3, 1) == [1.0, 0.5, 0.25]


def test_hours_are_weighted_by_age_while_they_are_significant():
    """With a half-life of 6 hours, usage 6 hours ago counts half. 30 half-lives are 180 hours."""
    found = decayed_hours(28, 0.25)
    assert [found[age] for age in (0, 6, 12)] == [1.0, 0.5, 0.25]
    assert len(found) == 180
    assert len(decayed_hours(1, 0.25)) == 24


@pytest.mark.parametrize(
    ("usage", "share", "factor"), [(0, 0.1, 1.0), (0.1, 0.1, 0.5), (0.2, 0.1, 0.25), (0.5, 1, 0.70710678)]
)
def test_the_factor_is_two_to_the_minus_usage_over_share(usage, share, factor):
    assert fair_share_factor(usage, share) == pytest.approx(factor)


def test_the_factor_never_reaches_zero():
    assert fair_share_factor(1.0, 1e-9) > 0


def test_a_negative_share_is_rejected():
    with pytest.raises(ValueError, match="less than 0"):
        fair_share_factor(0.1, -1)


@pytest.mark.parametrize(
    ("usage", "share", "dampening", "factor"),
    # 2^(-(usage/share)/dampening), as priority_p_calc_fs_factor of Slurm; 0 without a share.
    [
        (1, 0.1, 1, 2**-10),
        (1, 0.1, 5, 0.25),
        (10, 0.1, 5, 2**-20),
        (0, 0.1, 5, 1),
        (0, 0, 1, 0),
        (1, 0, 5, 0),
    ],
)
def test_the_factor_is_dampened_and_is_0_without_a_share(usage, share, dampening, factor):
    assert fair_share_factor(usage, share, dampening) == pytest.approx(factor)


@pytest.mark.parametrize("order", ["tree", "classic"])
def test_a_subject_with_weight_0_ranks_last_and_is_still_charged(order):
    rows = [("a/p/zero", 0, 0), ("a/p/busy", 1, 90), ("b/q/u", 1, 0), ("c", 0, 0), ("c/r/v", None, 10)]
    found = tree(*rows, policy=Policy(order=order))
    assert (found["a/p/zero"].factor, found["a/p/zero"].level_fair_share) == (0, 0)
    assert found["a/p/zero"].rank > found["a/p/busy"].rank
    assert found["a/p/busy"].share == 1
    assert (found["c"].rank, found["c"].factor, found["c/r/v"].factor) == (3, 0, 0)
    # Usage of c counts, so the other factors do not change.
    assert found["c"].actual == pytest.approx(0.1)
    assert found["a/p/busy"].actual == pytest.approx(0.9)
    people = {path: row.rank for path, row in found.items() if path.count("/") == 2}
    assert max(people, key=people.__getitem__) in ("c/r/v", "a/p/zero")


def test_siblings_that_all_have_weight_0_have_no_share():
    found = tree(("a", 0, 0), ("a/p/u", None, 5), ("b", 0, 0))
    assert {row.factor for row in found.values()} == {0}
    assert all(math.isfinite(row.norm_share) for row in found.values())


# “parent” on a person (Slurm): the classic rule takes the values of the account, Fair Tree ranks the person
# first in it; the person has no part in the shares of the others, whose usage counts as before.
#
#   a ── p ── u parent: 30 h, v 1: 10 h, w 3: 20 h            b ── q ── x: 40 h
#
#   shares v 1/4, w 3/4; u has norm share 1/2, effective .6 and the factor of p, 2^(-.6/.5)
#   level fair share: v (1/4)/(10/60) = 1.5, w (3/4)/(20/60) = 2.25
def test_a_person_with_parent_has_the_values_of_the_project():
    rows = [("a/p/u", "parent", 30), ("a/p/v", 1, 10), ("a/p/w", 3, 20), ("b/q/x", None, 40)]
    found = tree(*rows)
    assert (found["a/p/v"].share, found["a/p/w"].share) == (0.25, 0.75)
    person, project = found["a/p/u"], found["a/p"]
    assert (person.norm_share, person.effective) == (project.norm_share, project.effective)
    assert person.factor == project.factor == pytest.approx(2 ** (-0.6 / 0.5))
    assert found["a/p/v"].level_fair_share == pytest.approx(1.5)
    assert found["a/p/w"].level_fair_share == pytest.approx(2.25)
    assert [found[f"a/p/{name}"].rank for name in "uwv"] == [2, 3, 4]


# “parent” on an account (Slurm): those below it are reparented to the first ancestor without it.
#
#   a ── p parent ── u 1: 10 h, v 3: 20 h        b ── q ── x: 40 h
#     └─ r 2     ── w: 30 h
#
#   u, v and r share a: 1/6, 3/6, 2/6, of norm share 1/2 each; usage of a 60
#   level fair share: u (1/6)/(10/60) = 1, v (3/6)/(20/60) = 1.5, r (2/6)/(30/60) = 2/3
#   effective: a .6, u .1 + (.6 - .1)/6, v .2 + (.6 - .2)/2, r .3 + (.6 - .3)/3
JOINED = [
    ("a/p", "parent", 0), ("a/p/u", 1, 10), ("a/p/v", 3, 20), ("a/r", 2, 0), ("a/r/w", None, 30),
    ("b/q/x", None, 40),
]  # fmt: skip


def test_people_of_a_project_with_parent_compete_with_its_siblings():
    found = tree(*JOINED)
    shares = {name: found[name].share for name in ("a/p/u", "a/p/v", "a/r")}
    assert shares == pytest.approx({"a/p/u": 1 / 6, "a/p/v": 3 / 6, "a/r": 2 / 6})
    assert found["a/p/v"].norm_share == pytest.approx(1 / 4)
    assert [found[name].level_fair_share for name in shares] == pytest.approx([1, 1.5, 2 / 3])
    effective = [found[name].effective for name in shares]
    assert effective == pytest.approx([0.1 + 0.5 / 6, 0.2 + 0.4 / 2, 0.3 + 0.3 / 3])
    assert [found[name].rank for name in ("b/q/x", "a/p/v", "a/p/u", "a/r/w")] == [1, 2, 3, 4]


def test_people_of_a_domain_and_project_with_parent_compete_at_the_root():
    rows = [("a", "parent", 0), ("a/p", "parent", 0), ("a/p/u", 1, 10), ("b", 3, 0), ("b/q/x", None, 30)]
    found = tree(*rows)
    assert (found["a/p/u"].share, found["b"].share) == (0.25, 0.75)
    assert found["a/p/u"].effective == pytest.approx(0.25)
    assert found["a/p/u"].factor == pytest.approx(0.5)
    assert found["a/p/u"].level_fair_share == pytest.approx(1.0)
    # A tie with a domain: the person goes before those in it. Slurm gives the same rank to the first of them.
    assert (found["a/p/u"].rank, found["b/q/x"].rank) == (1, 2)


# Slurm's documentation of its classic rule, “Fair-share factor example”:
#
#   A 40 shares ── B 30 ── User 1 (1)          usage 20 %
#               └─ C 10 ── User 2 (1)          usage 25 %
#                       └─ User 3 (1)          usage  0 %
#   D 60 shares ── E 25 ── User 4 (1)          usage 25 %
#               └─ F 35 ── User 5 (1)          usage  0 %      the other 30 % belong to none of them
#
#   effective: A 45 %, D 25 %
#     B 20 + (45 − 20) · 30/40 = 38.75 %       User 1 20 + (38.75 − 20) · 1/1 = 38.75 %
#     C 25 + (45 − 25) · 10/40 = 30 %          User 2 25 + (30 − 25) / 2 = 27.5 %, User 3 0 + 30 / 2 = 15 %
#     E 25 + (25 − 25) · 25/60 = 25 %          User 4 25 %
#     F  0 + 25 · 35/60 = 14.583333 %          User 5 14.583333 %
#   factors: 2^(−.3875/.3), 2^(−.275/.05), 2^(−.15/.05), 2^(−.25/.25), 2^(−.14583333/.35)
SLURM = [
    ("A", 40, 0), ("A/B", 30, 0), ("A/B/user-1", 1, 20), ("A/C", 10, 0), ("A/C/user-2", 1, 25),
    ("A/C/user-3", 1, 0), ("D", 60, 0), ("D/E", 25, 0), ("D/E/user-4", 1, 25), ("D/F", 35, 0),
    ("D/F/user-5", 1, 0),
]  # fmt: skip
SSHARE_OUTPUT = {  # norm share, effective usage, factor
    "A/B/user-1": (0.300000, 0.387500, 0.408479),
    "A/C/user-2": (0.050000, 0.275000, 0.022097),
    "A/C/user-3": (0.050000, 0.150000, 0.125000),
    "D/E/user-4": (0.250000, 0.250000, 0.500000),
    "D/F/user-5": (0.350000, 0.145833, 0.749154),
}


def test_the_relative_rule_gives_the_output_of_sshare():
    found = tree(*SLURM, unattributed=30.0)
    printed = {
        path: tuple(f"{value:.6f}" for value in (row.norm_share, row.effective, row.factor))
        for path, row in found.items()
        if path in SSHARE_OUTPUT
    }
    assert printed == {path: tuple(f"{value:.6f}" for value in row) for path, row in SSHARE_OUTPUT.items()}


def test_the_classic_order_compares_only_the_factor():
    found = tree(*SLURM, unattributed=30.0, policy=Policy(order="classic"))
    people = sorted(SSHARE_OUTPUT, key=lambda path: found[path].rank)
    assert people == ["D/F/user-5", "D/E/user-4", "A/B/user-1", "A/C/user-3", "A/C/user-2"]


def test_the_tree_order_compares_at_the_level_where_ancestors_differ():
    """Level fair shares: A (40/100)/(45/70) = 0.622, D (60/100)/(25/70) = 1.68, so all of D go before A.

    In D: F has no usage, so it is before E. In A: B (30/40)/(20/45) = 1.6875, C (10/40)/(25/45) = 0.45.
    In C: user 3 has no usage.
    """
    found = tree(*SLURM, unattributed=30.0)
    people = sorted(SSHARE_OUTPUT, key=lambda path: found[path].rank)
    assert people == ["D/F/user-5", "D/E/user-4", "A/B/user-1", "A/C/user-3", "A/C/user-2"]
    assert found["A"].level_fair_share == pytest.approx(0.4 / (45 / 70))
    assert found["D"].level_fair_share == pytest.approx(0.6 / (25 / 70))
    assert found["A/B"].level_fair_share == pytest.approx(1.6875)
    assert found["A/C"].level_fair_share == pytest.approx(0.45)
    assert found["A/C/user-3"].level_fair_share == math.inf


# A tree with uneven weights in which both orders differ.
#
#   red  weight 3 ── one  weight 2 ── ann 1: 60 h, bob 3: 0 h
#                 └─ two  weight 1 ── cy  1: 10 h
#   blue weight 1 ── three (1)     ── dee 1: 20 h, eve 1: 10 h
#
#   total 100; norm shares: red 3/4, one 3/4·2/3 = 1/2, ann 1/2·1/4 = 1/8, bob 3/8, two = cy = 1/4,
#   blue = three = 1/4, dee = eve = 1/8.
#   effective: red .7, one .6 + (.7 − .6)·2/3 = .66667, ann .6 + (.66667 − .6)·1/4 = .61667,
#   bob 0 + .66667·3/4 = .5, two .1 + (.7 − .1)·1/3 = .3 = cy, blue .3 = three,
#   dee .2 + (.3 − .2)/2 = .25, eve .1 + (.3 − .1)/2 = .2.
#   F: ann 2^(−.61667·8) = .032728, bob 2^(−.5/.375) = .396850, cy 2^(−.3·4) = .435275,
#   dee 2^(−.25·8) = .25, eve 2^(−.2·8) = .329877.
#   classic: cy, bob, eve, dee, ann.
#   tree: red .75/.7 = 1.07 before blue .25/.3 = .83; in red two (1/3)/(10/70) = 2.33 before one
#   (2/3)/(60/70) = .78: cy; in one bob (no usage) before ann; in blue eve (1/2)/(10/30) before dee.
UNEVEN = [
    ("red", 3, 0), ("red/one", 2, 0), ("red/one/ann", 1, 60), ("red/one/bob", 3, 0),
    ("red/two", 1, 0), ("red/two/cy", 1, 10), ("blue", 1, 0), ("blue/three", None, 0),
    ("blue/three/dee", 1, 20), ("blue/three/eve", 1, 10),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "norm_share", "effective", "factor"),
    [
        ("red/one/ann", 1 / 8, 0.6166667, 0.0327279),
        ("red/one/bob", 3 / 8, 0.5, 0.3968503),
        ("red/two/cy", 1 / 4, 0.3, 0.4352753),
        ("blue/three/dee", 1 / 8, 0.25, 0.25),
        ("blue/three/eve", 1 / 8, 0.2, 0.3298770),
    ],
)
def test_factors_of_a_tree_with_unequal_weights(path, norm_share, effective, factor):
    row = tree(*UNEVEN)[path]
    assert (row.norm_share, row.effective, row.factor) == pytest.approx(
        (norm_share, effective, factor), rel=1e-5
    )


@pytest.mark.parametrize(
    ("order", "people"), [("classic", "cy bob eve dee ann"), ("tree", "cy bob ann eve dee")]
)
def test_both_orders_rank_a_tree_with_unequal_weights(order, people):
    found = tree(*UNEVEN, policy=Policy(order=order))
    ranked = sorted((row for path, row in found.items() if path.count("/") == 2), key=lambda row: row.rank)
    assert " ".join(str(row.path[-1]) for row in ranked) == people
    assert [row.rank for row in ranked] == [1, 2, 3, 4, 5]


def test_usage_can_be_relative_to_capacity():
    """8 cores and 32 GB for 100 h: 200 core-hours are 25 %, 320 GB-hours 10 %; weights 1 and 0.25.

    (1 · .25 + .25 · .1) / 1.25 = .22; F = 2^(−.22/2) with weight 2.
    """
    usage, capacity = (200.0, 320.0, 50.0, 0.0), (800.0, 3200.0, 1000.0, 0.0)
    assert capacity_usage(usage, Policy().weights, capacity) == pytest.approx(0.22)
    policy = Policy(normalisation="capacity")
    subjects = [
        Subject(("d",), None, NONE),
        Subject(("d", "p"), None, NONE),
        Subject(("d", "p", "u"), 2, usage),
    ]
    user = calculate(subjects, policy, capacity=capacity)[-1]
    assert (user.effective, user.factor) == pytest.approx((0.22, 2**-0.11))


def test_capacity_is_decayed_like_usage_and_excludes_the_rest_of_today():
    """10 cores: 10 · 24 h · (½ day today + ½ for yesterday + ¼ for the day before)."""
    found = capacity_hours({"cpu_cores": 10.0}, RESOURCE_NAMES, [1.0, 0.5, 0.25], part=0.5)
    assert found == [10 * 24 * 1.25, 0.0, 0.0, 0.0]


def test_without_usage_all_subjects_have_factor_and_rank_1():
    for policy in (Policy(), Policy(order="classic"), Policy(normalisation="capacity")):
        rows = tree(
            ("a/p/u", 5, 0),
            ("a/p/v", None, 0),
            ("b/q/w", 1, 0),
            policy=policy,
            capacity=(10.0, 10.0, 0.0, 0.0),
        ).values()
        assert {(row.factor, row.rank, row.level_factors[-1]) for row in rows} == {(1.0, 1, 1.0)}


def test_unset_weights_use_the_default_of_the_policy():
    rows = tree(("a/p/u", None, 1), ("a/p/v", None, 1), policy=Policy(default_weight=4))
    assert {row.weight for row in rows.values()} == {4}
    assert all(row.inherited for row in rows.values())
    assert rows["a/p/u"].share == 0.5


def test_one_person_in_two_projects_is_two_subjects():
    rows = tree(("a/p/u", None, 10), ("a/q/u", None, 0))
    assert rows["a/p/u"].rank == 2
    assert rows["a/q/u"].rank == 1


def test_a_project_without_people_keeps_its_usage():
    rows = tree(("a/p", None, 10), ("a/q/u", None, 10))
    assert rows["a"].weighted_usage == 20
    assert rows["a/q/u"].actual == 0.5


def test_resource_weights_combine_resources_into_one_usage():
    policy = Policy(resource_weights={"cpu_cores": 2, "gpu": 10})
    rows = calculate([Subject(("a",), None, (3.0, 4.0, 5.0, 1.0))], policy)
    assert rows[0].weighted_usage == 3 * 2 + 4 * 0.25 + 5 * 0 + 1 * 10
    assert policy.weight_sources["memory_gb"] == (0.25, "default")
    assert policy.weight_sources["gpu"] == (10.0, "policy")


def test_equal_subjects_share_a_rank():
    rows = tree(("a/p/u", None, 5), ("a/p/v", None, 5), ("a/p/w", None, 9))
    assert [rows[f"a/p/{name}"].rank for name in "uvw"] == [1, 1, 3]


def summed(hours, half_life=7.0):
    """Usage by age in days, decayed and summed in the given order."""
    total = 0.0
    for age, used in hours:
        total += used * decay(age, half_life)
    return total


@given(
    hours=st.lists(st.tuples(st.integers(0, 27), st.integers(1, 10**6)), min_size=2, max_size=28),
    data=st.data(),
    order=st.sampled_from(["tree", "classic"]),
)
def test_equal_usage_ties_whatever_the_order_of_summation(hours, data, order):
    """Eight people in two projects of two domains used the same, and one of each project used more."""
    orders = [data.draw(st.permutations(hours)) for _ in range(8)]
    half = len(hours) // 2
    sums = [summed(each) for each in orders[:4]] + [
        summed(each[:half]) + summed(each[half:]) for each in orders[4:]
    ]
    paths = [f"{domain}/{project}" for domain in "ab" for project in "pq"]
    rows = [(f"{path}/{n}", None, used) for path, used in zip(paths * 2, sums, strict=True) for n in "u"]
    rows = [(f"{path}{n}", weight, used) for n, (path, weight, used) in enumerate(rows)]
    rows += [(f"{path}/more", None, sums[0] * 1.0001) for path in paths]
    found = tree(*rows, policy=Policy(order=order))
    people = {path: row for path, row in found.items() if path.count("/") == 2}
    assert {row.rank for path, row in people.items() if not path.endswith("more")} == {1}
    assert {row.rank for path, row in people.items() if path.endswith("more")} == {9}
    assert {row.rank for path, row in found.items() if path.count("/") < 2} == {1}


@given(values=st.lists(st.floats(0, 1e12) | st.just(math.inf)))
def test_removing_rounding_noise_keeps_order_and_values(values):
    found = remove_rounding_noise(values).tolist()
    assert all(a == b or abs(a - b) <= 1e-6 * a for a, b in zip(found, values, strict=True))
    for (old, new), (other_old, other_new) in pairwise(sorted(zip(values, found, strict=True))):
        assert new <= other_new
        assert (new == other_new) or old < other_old


@pytest.mark.parametrize("paths", [[("a", "p")], [("a",), ("a",)]])
def test_an_invalid_tree_is_rejected(paths):
    with pytest.raises(ValueError, match=r"no parent|twice"):
        calculate([Subject(path, None, NONE) for path in paths], Policy())


trees = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("pq"), st.sampled_from("uvw")),
    st.tuples(st.none() | st.floats(0.01, 100), st.floats(0, 1e6)),
    min_size=1,
)
any_weight = st.none() | st.just(0) | st.just("parent") | st.floats(1e-6, 1e9)


def grown(leaves, **options):
    return tree(*(("/".join(path), weight, usage) for path, (weight, usage) in leaves.items()), **options)


@given(leaves=trees, order=st.sampled_from(["tree", "classic"]))
def test_factors_and_level_factors_stay_in_range(leaves, order):
    policy = Policy(order=order)
    for row in grown(leaves, policy=policy).values():
        assert 0 < row.factor <= 1
        assert all(0 < value <= 1 for value in compared_factors(row, policy))
        assert len(compared_factors(row, policy)) == 3


@given(
    leaves=trees,
    given_weights=st.dictionaries(st.sampled_from(["a", "b", "c", "a/p", "b/p", "b/q"]), any_weight),
    people=st.dictionaries(st.sampled_from(["a/p/u", "a/p/v", "b/q/w"]), any_weight),
    policy=st.sampled_from([Policy(), Policy(order="classic"), Policy(dampening_factor=7)]),
)
def test_any_weights_give_factors_and_level_factors_in_range(leaves, given_weights, people, policy):
    named = {"/".join(path): values for path, values in leaves.items()}
    rows = {path: (people.get(path, weight), usage) for path, (weight, usage) in named.items()}
    rows |= {path: (weight, 0.0) for path, weight in given_weights.items()}
    for row in tree(*((path, *values) for path, values in rows.items()), policy=policy).values():
        assert 0 <= row.factor <= 1
        assert 0 <= row.norm_share <= 1
        assert all(0 <= value <= 1 for value in compared_factors(row, policy))


@given(leaves=trees)
def test_shares_and_usage_of_a_level_sum_to_the_whole(leaves):
    rows = grown(leaves)
    people = [row for path, row in rows.items() if path.count("/") == 2]
    assert sum(row.norm_share for row in people) == pytest.approx(1.0)
    used = sum(usage for _, usage in leaves.values())
    assert sum(row.actual for row in people) == pytest.approx(1.0 if used else 0.0)


@given(leaves=trees, more=st.floats(1, 1e6))
def test_more_usage_never_improves_the_rank(leaves, more):
    path = sorted(leaves)[0]
    weight, usage = leaves[path]
    before = grown(leaves)["/".join(path)]
    after = grown({**leaves, path: (weight, usage + more)})["/".join(path)]
    assert after.factor <= before.factor + 1e-12
    assert after.rank >= before.rank or math.isclose(after.level_factors[-1], before.level_factors[-1])


@given(leaves=trees)
def test_the_order_follows_the_level_fair_shares(leaves):
    rows = grown(leaves)
    people = sorted((row for path, row in rows.items() if path.count("/") == 2), key=lambda row: row.rank)
    for first, second in pairwise(people):
        parts = next(
            (depth for depth in range(3) if first.level_factors[depth] != second.level_factors[depth]), None
        )
        if parts is not None:
            above = ["/".join(row.path[: parts + 1]) for row in (first, second)]
            assert rows[above[0]].ratio < rows[above[1]].ratio


@given(actual=st.floats(0, 1), parent=st.floats(0, 1), share=st.floats(0, 1))
def test_effective_usage_is_between_actual_and_parent_usage(actual, parent, share):
    found = effective_usage(actual, parent, share)
    assert min(actual, parent) - 1e-9 <= found <= max(actual, parent) + 1e-9


@given(one=st.floats(0, 1e9), other=st.floats(0, 1e9))
def test_level_factors_keep_the_order_of_ratios(one, other):
    assume(one < other)
    assert level_factor(one) >= level_factor(other)


def test_level_factor_of_no_usage_and_of_the_share():
    assert level_factor(usage_ratio(0, 10, 0.5)) == 1.0
    assert level_factor(usage_ratio(5, 10, 0.5)) == 0.5


@pytest.mark.parametrize(
    "value", [0, -1, "nan", float("nan"), float("inf"), "many", None, True, "", 1e10, 9e-7, 5e-324]
)
def test_invalid_weights_have_a_problem(value):
    assert str(weight_problem(value))


@pytest.mark.parametrize("value", [1, 0.5, "2.5", 1e-6])
def test_valid_weights_have_no_problem(value):
    assert weight_problem(value) is None


def test_a_weight_below_the_limit_is_rejected_with_value_and_limit():
    assert str(weight_problem("1e-9")) == "It must be between 0.000001 and 1,000,000,000, but is 1e-9."


@pytest.mark.parametrize("stored", [1e-200, 5e-324, 1e300, math.nan, math.inf])
@pytest.mark.parametrize("policy", [Policy(), Policy(order="classic"), Policy(normalisation="capacity")])
def test_a_stored_weight_outside_the_limits_does_not_break_the_calculation(stored, policy):
    """Use the weight at each level of one branch; the other branch is calculated as well."""
    rows = [("a", stored, 0), ("a/p", stored, 0), ("a/p/u", stored, 5), ("b/q/v", None, 5), ("a/p/w", 1, 0)]
    found = tree(*rows, policy=policy, capacity=(10.0, 0.0, 0.0, 0.0))
    for row in found.values():
        assert 0 < row.factor <= 1
        assert 0 < row.norm_share <= 1
        assert all(0 < value <= 1 for value in row.level_factors)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"half_life_days": 0}, "half_life_days"),
        ({"half_life_days": 0.04}, "half_life_days"),
        ({"half_life_days": float("nan")}, "half_life_days"),
        ({"default_weight": -1}, "default_weight"),
        ({"dampening_factor": 0}, "dampening_factor"),
        ({"dampening_factor": 65_536}, "dampening_factor"),
        ({"lookback_days": 0}, "lookback_days"),
        ({"lookback_days": 1.5}, "lookback_days"),
        ({"lookback_days": float("inf")}, "lookback_days"),
        ({"lookback_days": "soon"}, "lookback_days"),
        ({"normalisation": "loud"}, "normalisation"),
        ({"order": "random"}, "order"),
        ({"resource_weights": {"ram": 1}}, "resource_weights"),
        ({"resource_weights": {"gpu": -1}}, "resource_weights"),
        ({"resource_weights": {"gpu": float("nan")}}, "resource_weights"),
        ({"resource_weights": [1]}, "resource_weights"),
        ({"resource_weights": {"cpu_cores": 0, "memory_gb": 0, "gpu": 0}}, "resource_weights"),
    ],
)
def test_invalid_policies_have_a_problem(values, field):
    assert list(policy_problems(values)) == [field]


def test_the_default_policy_is_valid():
    assert policy_problems(vars(Policy())) == {}


def test_a_tree_of_100_000_people_is_calculated_quickly():
    """100,000 people in 500 projects of 20 domains."""
    import time

    subjects = [Subject((d,), None, NONE) for d in range(20)]
    subjects += [Subject((p % 20, p), None, NONE) for p in range(500)]
    subjects += [Subject((u % 20, u % 500, u), None, cpu(u % 97)) for u in range(100_000)]
    begun = time.process_time()
    results = calculate(subjects, Policy())
    assert time.process_time() - begun < 6
    assert len(results) == 100_520
    assert sum(row.norm_share for row in results if len(row.path) == 3) == pytest.approx(1.0)
