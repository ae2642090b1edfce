"""Fair-share arithmetic: decay, fair-share factor and level fair share.

Functions that take a number also take an array and apply to each element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# 2 to the power of minus this is still greater than zero.
MAX_EXPONENT = 1_000.0
# Relative rounding error of sums of the same usage in another order is far smaller than this.
NOISE = 1e-9
# Usage older than this many half-lives is below the rounding noise.
COUNTED_HALF_LIVES = 30


def decay(age_days: float, half_life_days: float) -> float:
    """Return the weight of usage of this age: 1 today, 0.5 after a half-life."""
    return math.exp2(-min(age_days / half_life_days, MAX_EXPONENT))


def decayed_days(lookback_days: int, half_life_days: float) -> list[float]:
    """Return the weight of each day by age: today, yesterday, … to the end of the window."""
    return [decay(age, half_life_days) for age in range(lookback_days)]


def decayed_hours(lookback_days: int, half_life_days: float) -> list[float]:
    """Return the weight of each hour by age: this hour, the one before, … as long as it is significant."""
    counting = math.ceil(COUNTED_HALF_LIVES * half_life_days * 24)
    return [decay(age / 24, half_life_days) for age in range(min(lookback_days * 24, counting))]


def fair_share_factor(normalized_usage: Any, share: Any, dampening: float = 1) -> Any:
    """F = 2^(-usage/share/dampening): 1 with no usage, 0.5 when usage equals the share, 0 without a share."""
    shares = np.asarray(share, dtype=float)
    if np.any(shares < 0):
        raise ValueError("a share must not be less than 0")
    exponent = normalized_usage / np.where(shares > 0, shares, 1.0) / dampening
    return np.where(shares > 0, np.exp2(-np.minimum(exponent, MAX_EXPONENT)), 0.0)


def effective_usage(actual: Any, parent: Any | None, share: Any) -> Any:
    """Return Slurm's effective usage: own usage, and below the first level a share of the siblings' usage."""
    return actual if parent is None else actual + (parent - actual) * share


def usage_ratio(usage: Any, sibling_usage: Any, share: Any) -> Any:
    """Return the fraction of the siblings' usage ÷ the share: 0 without usage, infinite without a share."""
    total = np.where(np.asarray(usage) > 0, sibling_usage, 1.0)
    shares = np.asarray(share, dtype=float)
    return np.where(shares > 0, usage / total / np.where(shares > 0, shares, 1.0), np.inf)


def level_factor(ratio: Any) -> Any:
    """Map the level fair share 1/ratio into [0, 1]: no usage is 1, the share is 0.5, no share is 0."""
    return 1.0 / (1.0 + ratio)


def remove_rounding_noise(values: Any) -> Any:
    """Return the values with rounding noise removed, so that equal sums tie.

    Rounding to a grid would not work: two equal sums can lie on either side of a grid boundary.
    """
    order = np.argsort(values, kind="stable")
    ascending = np.asarray(values, dtype=float)[order]
    # The difference of two infinite neighbours is NaN, which counts as equal.
    with np.errstate(invalid="ignore"):
        differs = ascending[1:] - ascending[:-1] > NOISE * ascending[:-1]
    starts = np.concatenate([[True], differs])[: len(ascending)]
    cleaned = np.empty_like(ascending)
    cleaned[order] = ascending[np.maximum.accumulate(np.where(starts, np.arange(len(ascending)), 0))]
    return cleaned


def weighted(usage: Sequence[Any], weights: Sequence[float]) -> Any:
    """Return several resources as one weighted usage; `usage` has a number or an array for each."""
    return sum((amount * weight for amount, weight in zip(usage, weights, strict=True)), 0.0)


def capacity_usage(usage: Sequence[Any], weights: Sequence[float], capacity: Sequence[float]) -> Any:
    """Return Σ w·usage/capacity / Σ w over the resources with capacity."""
    known = [(u, w, c) for u, w, c in zip(usage, weights, capacity, strict=True) if c > 0 and w > 0]
    weight_sum = sum(w for _, w, _ in known)
    return sum(w * u / c for u, w, c in known) / weight_sum if weight_sum else usage[0] * 0.0


def capacity_hours(
    amounts: Mapping[str, float],
    resources: Sequence[str],
    decays: Sequence[float],
    part: float,
    period: float = 24.0,
) -> list[float]:
    """Return the capacity of the window, decayed like usage.

    `decays` are the weights of periods of `period` hours, newest first; only `part` of the newest one is
    over.
    """
    periods = sum(decays[1:]) + (decays[0] * part if decays else 0.0)
    return [amounts.get(name, 0.0) * period * periods for name in resources]
