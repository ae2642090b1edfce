"""Fair share over a tree of domains, projects and people: plain values in and out, arrays inside."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairshare.arithmetic.factor import (
    capacity_usage,
    effective_usage,
    fair_share_factor,
    level_factor,
    remove_rounding_noise,
    usage_ratio,
    weighted,
)
from fairshare.arithmetic.policy import PARENT, Policy, Weight, usable_weight

Path = tuple[Hashable, ...]
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Indexes: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
DEPTH = 3


class Subject(NamedTuple):
    """A node of the tree: its path from the root, its own weight if any, and its own usage in hours.

    With the weight “parent”, a person takes the values of the project, and the children of a project or
    domain compete at the level above it.
    """

    path: Path
    weight: Weight
    usage: Sequence[float]


class FairShareResult(NamedTuple):
    """Fair share of a subject."""

    path: Path
    weight: float
    inherited: bool
    share: float  # among its siblings: the level share
    norm_share: float  # of the whole pool
    usage: tuple[float, ...]  # including all descendants, by resource
    weighted_usage: float
    actual: float  # of the pool's usage
    effective: float  # input of the factor
    factor: float
    ratio: float  # usage among siblings ÷ share; its inverse is the level fair share
    level_factors: tuple[float, ...]  # compared from the left, higher first
    rank: int  # within its level

    @property
    def level_fair_share(self) -> float:
        return 1.0 / self.ratio if self.ratio else float("inf")


class _Level(NamedTuple):
    """The subjects at one depth of the tree, as arrays."""

    subjects: Sequence[Subject]
    parent: Indexes  # index of the parent in the level above
    # Group that a subject competes in: the first ancestor whose weight is not “parent”, or 0, the root.
    group: Indexes
    number: Indexes  # group of its children
    joins: Flags  # its weight is “parent”
    weight: Numbers
    usage: list[Numbers]  # by resource, including all descendants
    parents: int

    def by_parent(self, values: Numbers) -> Numbers:
        sums: Numbers = np.bincount(self.parent, weights=values, minlength=self.parents).astype(float)
        return sums


class _Groups(NamedTuple):
    """By group number: sums over the competing subjects, and the values of the group's head."""

    weight: Numbers
    weighted_usage: Numbers
    norm_share: Numbers
    effective: Numbers
    factor: Numbers
    level_factors: Numbers  # one row per level, compared from the first
    depth: Indexes  # number of rows of `level_factors` that the head has


class _LevelResult(NamedTuple):
    """The results of a level."""

    share: Numbers
    norm_share: Numbers
    weighted_usage: Numbers
    actual: Numbers
    effective: Numbers
    factor: Numbers
    ratio: Numbers
    level_factors: Numbers


def calculate(
    subjects: Sequence[Subject],
    policy: Policy,
    *,
    capacity: Sequence[float] = (),
    unattributed: float = 0.0,
) -> list[FairShareResult]:
    """Return shares, usage, factor and rank of every subject.

    `capacity` is the available capacity by resource; `unattributed` is usage of the pool that belongs to no
    subject of the tree.
    """
    levels = _build_levels(subjects, policy)
    total = unattributed + (float(weighted(levels[0].usage, policy.weights).sum()) if levels else 0.0)
    groups = _groups(levels, policy)
    results: list[FairShareResult] = []
    for depth, level in enumerate(levels, 1):
        computed = _calculate_level(level, groups, policy, total, capacity)
        _keep_heads(level, computed, groups)
        results.extend(_results(level, computed, policy, depth))
    return results


def _build_levels(subjects: Sequence[Subject], policy: Policy) -> list[_Level]:
    """Return the levels from the top down, with usage summed from the bottom up."""
    levels: list[_Level] = []
    index: dict[Path, int] = {(): 0}
    parent_numbers = np.zeros(1, dtype=np.int64)
    first_number = 1
    for depth in range(1, max((len(subject.path) for subject in subjects), default=0) + 1):
        level_subjects = [subject for subject in subjects if len(subject.path) == depth]
        parent = _parents(level_subjects, index)
        group = parent_numbers[parent]
        joins = np.array([subject.weight == PARENT for subject in level_subjects], dtype=bool)
        number = np.where(joins, group, np.arange(first_number, first_number + len(level_subjects)))
        weight = np.array(
            [usable_weight(subject.weight, policy.default_weight) for subject in level_subjects], dtype=float
        )
        usage = (
            np.array([subject.usage for subject in level_subjects], dtype=float)
            .reshape(len(level_subjects), len(policy.weights))
            .T
        )
        levels.append(_Level(level_subjects, parent, group, number, joins, weight, list(usage), len(index)))
        if depth < DEPTH:
            index = _index(level_subjects)
        parent_numbers, first_number = number, first_number + len(level_subjects)
    for level, higher in zip(levels[:0:-1], levels[-2::-1], strict=True):
        for resource, amounts in enumerate(level.usage):
            higher.usage[resource] = higher.usage[resource] + level.by_parent(amounts)
    return levels


def _groups(levels: Sequence[_Level], policy: Policy) -> _Groups:
    """Sum each group over all depths: children of a subject with “parent” compete further up."""
    size = 1 + sum(len(level.subjects) for level in levels)
    weight, weighted_usage = np.zeros(size), np.zeros(size)
    for depth, level in enumerate(levels, 1):
        weight += np.bincount(level.group, weights=np.where(level.joins, 0.0, level.weight), minlength=size)
        # Usage of a project with “parent” is counted with its people; usage of a person always counts.
        counted = weighted(level.usage, policy.weights)
        if depth < DEPTH:
            counted = np.where(level.joins, 0.0, counted)
        weighted_usage += np.bincount(level.group, weights=counted, minlength=size)
    ones = np.ones(size)
    return _Groups(
        weight,
        weighted_usage,
        ones,
        ones.copy(),
        ones.copy(),
        np.ones((DEPTH, size)),
        np.zeros(size, dtype=np.int64),
    )


def _keep_heads(level: _Level, computed: _LevelResult, groups: _Groups) -> None:
    """Store the values of subjects that head a group, for the levels below."""
    own = ~level.joins
    number = level.number[own]
    groups.norm_share[number] = computed.norm_share[own]
    groups.effective[number] = computed.effective[own]
    groups.factor[number] = computed.factor[own]
    groups.level_factors[:, number] = computed.level_factors[:, own]
    groups.depth[number] = groups.depth[level.group[own]] + 1


def _index(subjects: Sequence[Subject]) -> dict[Path, int]:
    index: dict[Path, int] = {}
    for number, subject in enumerate(subjects):
        if subject.path in index:
            raise ValueError(f"{subject.path} occurs in the tree twice")
        index[subject.path] = number
    return index


def _parents(subjects: Sequence[Subject], index: dict[Path, int]) -> Indexes:
    """Return the index of each subject's parent in the level above; neighbours mostly share one."""
    parents = []
    last: Path | None = None
    parent = 0
    for subject in subjects:
        path = subject.path[:-1]
        if path != last:
            if path not in index:
                raise ValueError(f"{subject.path} has no parent in the tree")
            last, parent = path, index[path]
        parents.append(parent)
    return np.array(parents, dtype=np.int64)


def _calculate_level(
    level: _Level, groups: _Groups, policy: Policy, total: float, capacity: Sequence[float]
) -> _LevelResult:
    """Calculate the shares and factors of a level."""
    group, joins, dampening = level.group, level.joins, policy.dampening_factor
    below_root = group != 0
    weighted_usage = weighted(level.usage, policy.weights)
    sibling_weight = groups.weight[group]
    share = np.where(joins, 1.0, level.weight / np.where(sibling_weight > 0, sibling_weight, 1.0))
    norm_share = share * groups.norm_share[group]
    actual = weighted_usage / total if total > 0 else weighted_usage * 0.0
    if policy.normalisation == "capacity":
        effective = capacity_usage(level.usage, policy.weights, capacity)
        factor = fair_share_factor(effective, level.weight, dampening)
    else:
        effective = np.where(below_root, effective_usage(actual, groups.effective[group], share), actual)
        factor = fair_share_factor(effective, norm_share, dampening)
    # Under the root there is no parent to take values from, so the share of the whole is kept.
    inherits = joins & below_root
    effective = np.where(inherits, groups.effective[group], effective)
    factor = remove_rounding_noise(np.where(inherits, groups.factor[group], factor))
    ratio = remove_rounding_noise(
        np.where(joins, 0.0, usage_ratio(weighted_usage, groups.weighted_usage[group], share))
    )
    level_factors = groups.level_factors[:, group].copy()
    own = np.flatnonzero(~joins)
    level_factors[groups.depth[group[own]], own] = level_factor(ratio[own])
    return _LevelResult(share, norm_share, weighted_usage, actual, effective, factor, ratio, level_factors)


def _results(level: _Level, computed: _LevelResult, policy: Policy, depth: int) -> Iterator[FairShareResult]:
    level_factors = list(computed.level_factors[:depth])
    ranks = _ranks(level_factors if policy.order == "tree" else [computed.factor])
    columns = (
        level.weight, [subject.weight is None for subject in level.subjects], computed.share,
        computed.norm_share,
        _rows(level.usage), computed.weighted_usage, computed.actual, computed.effective, computed.factor,
        computed.ratio, _rows(level_factors), ranks,
    )  # fmt: skip
    plain = (column.tolist() if isinstance(column, np.ndarray) else column for column in columns)
    return map(FairShareResult._make, zip((subject.path for subject in level.subjects), *plain, strict=True))


def _rows(columns: Sequence[Numbers]) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _ranks(keys: Sequence[Numbers]) -> Indexes:
    """Rank by the first key, then by the next, highest first; equal subjects share a rank."""
    order = np.lexsort([-key for key in reversed(keys)])
    differs = np.zeros(len(order), dtype=bool)
    differs[:1] = True
    for key in keys:
        differs[1:] |= key[order][1:] != key[order][:-1]
    positions = np.where(differs, np.arange(1, len(order) + 1), 0)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(positions)
    return ranks


def compared_factors(result: FairShareResult, policy: Policy) -> tuple[float, ...]:
    """Return three numbers to compare from the left; levels that do not matter are equal for all."""
    if policy.order == "classic":
        return (1.0, 1.0, result.factor)
    return (*result.level_factors, *((1.0,) * (DEPTH - len(result.level_factors))))
