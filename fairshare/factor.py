"""The arithmetic of fair share: decay, the factor and the level fair share, of one subject or of many.

What takes a number takes an array as well and does the same with each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# 2 to this power is still greater than zero.
MAX_EXPONENT = 1_000.0
# Sums of the same usage in another order differ by far less than this part of them.
NOISE = 1e-9


def decay(age_days: float, half_life_days: float) -> float:
    """What usage of this age still counts for: 1 today, 0.5 after a half-life."""
    return math.exp2(-min(age_days / half_life_days, MAX_EXPONENT))


def decayed_days(lookback_days: int, half_life_days: float) -> list[float]:
    """What a day counts for, by its age: today, yesterday, … to the end of the window."""
    return [decay(age, half_life_days) for age in range(lookback_days)]


def fair_share_factor(normalized_usage: Any, weight: Any) -> Any:
    """F = 2^(-usage/weight): 1 with no usage, 0.5 when usage equals the share."""
    if np.any(np.asarray(weight) <= 0):
        raise ValueError("a share must be greater than zero")
    return np.exp2(-np.minimum(normalized_usage / weight, MAX_EXPONENT))


def effective_usage(actual: Any, parent: Any | None, share: Any) -> Any:
    """Slurm's rule: what was used, and a share of what siblings used; at the first level what was used."""
    return actual if parent is None else actual + (parent - actual) * share


def usage_ratio(usage: Any, sibling_usage: Any, share: Any) -> Any:
    """The part of the siblings' usage that is one's own, relative to one's share; 0 without usage."""
    among = np.where(np.asarray(usage) > 0, sibling_usage, 1.0)
    return usage / among / share


def standing_of(ratio: Any) -> Any:
    """The level fair share 1/ratio mapped into (0, 1], in the same order: no usage is 1, the share is 0.5."""
    return 1.0 / (1.0 + ratio)


def without_noise(values: Any) -> Any:
    """Return the values with one value for all that differ by rounding noise alone, so that equals tie.

    Rounding to a grid would not do: two equal sums can lie on both sides of a boundary of the grid.
    """
    order = np.argsort(values, kind="stable")
    ascending = np.asarray(values, dtype=float)[order]
    # inf - inf is not a number: two infinite neighbours are compared by being equal.
    with np.errstate(invalid="ignore"):
        apart = ascending[1:] - ascending[:-1] > NOISE * ascending[1:]
    starts = np.concatenate([[True], apart & (ascending[1:] != ascending[:-1])])[: len(ascending)]
    found = np.empty_like(ascending)
    found[order] = ascending[np.maximum.accumulate(np.where(starts, np.arange(len(ascending)), 0))]
    return found


def weighted(usage: Sequence[Any], weights: Sequence[float]) -> Any:
    """Several resources as one usage; `usage` has a number or an array for each."""
    return sum((amount * weight for amount, weight in zip(usage, weights, strict=True)), 0.0)


def capacity_usage(usage: Sequence[Any], weights: Sequence[float], capacity: Sequence[float]) -> Any:
    """Σ w·usage/capacity / Σ w over the resources that there are any of."""
    known = [(u, w, c) for u, w, c in zip(usage, weights, capacity, strict=True) if c > 0 and w > 0]
    whole = sum(w for _, w, _ in known)
    return sum(w * u / c for u, w, c in known) / whole if whole else usage[0] * 0.0


def capacity_hours(
    amounts: Mapping[str, float], resources: Sequence[str], decays: Sequence[float], today: float
) -> list[float]:
    """What could have been used in the window, decayed like usage; of today only the part that is over."""
    days = sum(decays[1:]) + (decays[0] * today if decays else 0.0)
    return [amounts.get(name, 0.0) * 24.0 * days for name in resources]
