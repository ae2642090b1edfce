"""Fair share over a tree of domains, projects and people. Plain Python, some arrays for speed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairshare.factor import (
    capacity_usage,
    effective_usage,
    fair_share_factor,
    standing_of,
    usage_ratio,
    weighted,
)
from fairshare.policy import Policy

Path = tuple[Hashable, ...]
DEPTH = 3


class Subject(NamedTuple):
    """A place in the tree: its path from the top, its own weight if any, what it used itself (hours)."""

    path: Path
    weight: float | None
    usage: Sequence[float]


class Result(NamedTuple):
    """What came out for a subject."""

    path: Path
    weight: float
    inherited: bool
    share: float  # of its siblings' weights
    norm_share: float  # of the whole pool
    usage: tuple[float, ...]  # with all below it, by resource
    weighted_usage: float
    actual: float  # of the pool's usage
    effective: float  # what the factor is made of
    factor: float
    ratio: float  # usage among siblings ÷ share; its inverse is the level fair share
    standing: tuple[float, ...]  # compared from the left, the higher goes first
    rank: int  # among those of its level

    @property
    def level_fair_share(self) -> float:
        return 1.0 / self.ratio if self.ratio else float("inf")


@dataclass
class _Tree:
    """The subjects in arrays, parents before children."""

    subjects: list[Subject]
    parent: list[int]
    weight: list[float]
    usage: list[list[float]]
    worth: list[float]
    weight_sum: dict[int, float]
    worth_sum: dict[int, float]


def calculate(
    subjects: Sequence[Subject],
    policy: Policy,
    *,
    capacity: Sequence[float] = (),
    elsewhere: float = 0.0,
) -> list[Result]:
    """Shares, usage, factor and rank of every subject.

    `capacity` is what could have been used, by resource; `elsewhere` is usage of the pool that belongs to
    nobody in the tree.
    """
    tree = _grow(subjects, policy)
    total = tree.worth_sum.get(-1, 0.0) + elsewhere
    stands = _descend(tree, policy, total, capacity)
    ranks = _ranks(tree, stands, policy)
    weights, usage, worth = tree.weight, tree.usage, tree.worth
    return [
        Result(
            subject.path, weights[number], subject.weight is None, stand.share, stand.norm_share,
            tuple(usage[number]), worth[number], stand.actual, stand.effective, stand.factor, stand.ratio,
            stand.standing, ranks[number],
        )
        for number, (subject, stand) in enumerate(zip(tree.subjects, stands, strict=True))
    ]  # fmt: skip


def _grow(subjects: Sequence[Subject], policy: Policy) -> _Tree:
    """Parents found, usage summed up from below, siblings' sums."""
    ordered = sorted(subjects, key=lambda each: len(each.path))
    parent = _parents(ordered)
    usage = [list(each.usage) for each in ordered]
    for number in range(len(ordered) - 1, -1, -1):
        above = parent[number]
        if above >= 0:
            mine, theirs = usage[number], usage[above]
            for resource, amount in enumerate(mine):
                theirs[resource] += amount
    weights = policy.weights
    weight = [policy.default_weight if each.weight is None else each.weight for each in ordered]
    worth = [weighted(each, weights) for each in usage]
    return _Tree(ordered, parent, weight, usage, worth, _sums(parent, weight), _sums(parent, worth))


def _parents(ordered: Sequence[Subject]) -> list[int]:
    """Where each one's parent stands; -1 at the top. Neighbours mostly have the same one."""
    index: dict[Path, int] = {}
    parents: list[int] = []
    last: Path = ()
    above = -1
    for number, subject in enumerate(ordered):
        path = subject.path
        if path[:-1] != last:
            last = path[:-1]
            above = index.get(last, -1) if last else -1
            if last and above < 0:
                raise ValueError(f"{path} has no parent in the tree")
        if len(path) < DEPTH:
            if path in index:
                raise ValueError(f"{path} stands in the tree twice")
            index[path] = number
        parents.append(above)
    return parents


def _sums(parent: Sequence[int], values: Sequence[float]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for above, value in zip(parent, values, strict=True):
        sums[above] = sums.get(above, 0.0) + value
    return sums


class _Stand(NamedTuple):
    """What is computed from the top down."""

    share: float
    norm_share: float
    actual: float
    effective: float
    factor: float
    ratio: float
    standing: tuple[float, ...]


def _descend(tree: _Tree, policy: Policy, total: float, capacity: Sequence[float]) -> list[_Stand]:
    """From the top down: what a subject may use, and what that makes of its usage."""
    stands: list[_Stand] = []
    by_capacity = policy.normalisation == "capacity"
    weights = policy.weights
    for above, weight, worth, usage in zip(tree.parent, tree.weight, tree.worth, tree.usage, strict=True):
        parent = stands[above] if above >= 0 else None
        share = weight / tree.weight_sum[above]
        norm_share = share * (parent.norm_share if parent else 1.0)
        actual = worth / total if total > 0 else 0.0
        if by_capacity:
            effective = capacity_usage(usage, weights, capacity)
            factor = fair_share_factor(effective, weight)
        else:
            effective = effective_usage(actual, parent.effective if parent else None, share)
            factor = fair_share_factor(effective, norm_share)
        ratio = usage_ratio(worth, tree.worth_sum[above], share)
        standing = (*(parent.standing if parent else ()), standing_of(ratio))
        stands.append(_Stand(share, norm_share, actual, effective, factor, ratio, standing))
    return stands


def standing_values(result: Result, policy: Policy) -> tuple[float, ...]:
    """Three numbers to compare from the left; what stands above or below a level is equal for all."""
    if policy.order == "classic":
        return (1.0, 1.0, result.factor)
    return (*result.standing, *((1.0,) * (DEPTH - len(result.standing))))


def _ranks(tree: _Tree, stands: Sequence[_Stand], policy: Policy) -> list[int]:
    """1 is first, within a level; equals share a rank."""
    ranks = [0] * len(stands)
    by_tree = policy.order == "tree"
    keys: list[Any] = [each.standing if by_tree else each.factor for each in stands]
    levels: dict[int, list[int]] = {}
    for number, subject in enumerate(tree.subjects):
        levels.setdefault(len(subject.path), []).append(number)
    for level in levels.values():
        level.sort(key=keys.__getitem__, reverse=True)
        last: Any = None
        rank = 0
        for place, number in enumerate(level, 1):
            if keys[number] != last:
                last, rank = keys[number], place
            ranks[number] = rank
    return ranks
