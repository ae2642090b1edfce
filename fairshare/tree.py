"""Fair share over a tree of domains, projects and people: plain values in and out, arrays in between."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairshare.factor import (
    capacity_usage,
    effective_usage,
    fair_share_factor,
    standing_of,
    usage_ratio,
    weighted,
    without_noise,
)
from fairshare.policy import Policy, usable_weight

Path = tuple[Hashable, ...]
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
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


class _Level(NamedTuple):
    """Those at one depth of the tree, in arrays."""

    subjects: Sequence[Subject]
    parent: Places  # where the parent stands in the level above
    weight: Numbers
    usage: list[Numbers]  # by resource, with all below
    parents: int

    def among_siblings(self, values: Numbers) -> Numbers:
        """The sum over each one's siblings, itself among them."""
        return self.by_parent(values)[self.parent]

    def by_parent(self, values: Numbers) -> Numbers:
        sums: Numbers = np.bincount(self.parent, weights=values, minlength=self.parents).astype(float)
        return sums


class _Stand(NamedTuple):
    """What is computed of a level from the one above."""

    share: Numbers
    norm_share: Numbers
    worth: Numbers
    actual: Numbers
    effective: Numbers
    factor: Numbers
    ratio: Numbers
    standing: list[Numbers]  # by depth


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
    levels = _grow(subjects, policy)
    total = elsewhere + (float(weighted(levels[0].usage, policy.weights).sum()) if levels else 0.0)
    above: _Stand | None = None
    results: list[Result] = []
    for level in levels:
        above = _stand(level, above, policy, total, capacity)
        results.extend(_results(level, above, policy))
    return results


def _grow(subjects: Sequence[Subject], policy: Policy) -> list[_Level]:
    """The levels from the top down, with usage summed up from below."""
    found = []
    index: dict[Path, int] = {(): 0}
    for depth in range(1, max((len(each.path) for each in subjects), default=0) + 1):
        here = [each for each in subjects if len(each.path) == depth]
        parent = _parents(here, index)
        weight = [usable_weight(each.weight, policy.default_weight) for each in here]
        usage = np.array([each.usage for each in here], dtype=float).reshape(len(here), len(policy.weights)).T
        found.append(_Level(here, parent, np.array(weight, dtype=float), list(usage), len(index)))
        if depth < DEPTH:
            index = _index(here)
    for level, above in zip(found[:0:-1], found[-2::-1], strict=True):
        for resource, amounts in enumerate(level.usage):
            above.usage[resource] = above.usage[resource] + level.by_parent(amounts)
    return found


def _index(subjects: Sequence[Subject]) -> dict[Path, int]:
    index: dict[Path, int] = {}
    for number, subject in enumerate(subjects):
        if subject.path in index:
            raise ValueError(f"{subject.path} stands in the tree twice")
        index[subject.path] = number
    return index


def _parents(subjects: Sequence[Subject], index: dict[Path, int]) -> Places:
    """Where each one's parent stands in the level above. Neighbours mostly have the same one."""
    parents = []
    last: Path | None = None
    above = 0
    for subject in subjects:
        path = subject.path[:-1]
        if path != last:
            if path not in index:
                raise ValueError(f"{subject.path} has no parent in the tree")
            last, above = path, index[path]
        parents.append(above)
    return np.array(parents, dtype=np.int64)


def _stand(
    level: _Level, above: _Stand | None, policy: Policy, total: float, capacity: Sequence[float]
) -> _Stand:
    """What those of a level may use, and what that makes of their usage."""
    worth = weighted(level.usage, policy.weights)
    share = level.weight / level.among_siblings(level.weight)
    norm_share = share * above.norm_share[level.parent] if above else share
    actual = worth / total if total > 0 else worth * 0.0
    if policy.normalisation == "capacity":
        effective = capacity_usage(level.usage, policy.weights, capacity)
        factor = fair_share_factor(effective, level.weight)
    else:
        effective = effective_usage(actual, above.effective[level.parent] if above else None, share)
        factor = fair_share_factor(effective, norm_share)
    factor = without_noise(factor)
    ratio = without_noise(usage_ratio(worth, level.among_siblings(worth), share))
    inherited = [each[level.parent] for each in above.standing] if above else []
    standing = [*inherited, standing_of(ratio)]
    return _Stand(share, norm_share, worth, actual, effective, factor, ratio, standing)


def _results(level: _Level, stand: _Stand, policy: Policy) -> Iterator[Result]:
    ranks = _ranks(stand.standing if policy.order == "tree" else [stand.factor])
    columns = (
        level.weight, [each.weight is None for each in level.subjects], stand.share, stand.norm_share,
        _rows(level.usage), stand.worth, stand.actual, stand.effective, stand.factor, stand.ratio,
        _rows(stand.standing), ranks,
    )  # fmt: skip
    plain = (each.tolist() if isinstance(each, np.ndarray) else each for each in columns)
    return map(Result._make, zip((each.path for each in level.subjects), *plain, strict=True))


def _rows(columns: Sequence[Numbers]) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _ranks(keys: Sequence[Numbers]) -> Places:
    """1 is first: the highest by the first key, then by the next; equals share a rank."""
    order = np.lexsort([-key for key in reversed(keys)])
    differs = np.zeros(len(order), dtype=bool)
    differs[:1] = True
    for key in keys:
        differs[1:] |= key[order][1:] != key[order][:-1]
    places = np.where(differs, np.arange(1, len(order) + 1), 0)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(places)
    return ranks


def standing_values(result: Result, policy: Policy) -> tuple[float, ...]:
    """Three numbers to compare from the left; what stands above or below a level is equal for all."""
    if policy.order == "classic":
        return (1.0, 1.0, result.factor)
    return (*result.standing, *((1.0,) * (DEPTH - len(result.standing))))
