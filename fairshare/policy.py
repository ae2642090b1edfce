"""A fair-share policy as plain values, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairshare.units import RESOURCES

NORMALISATIONS = ("relative", "capacity")
ORDERS = ("tree", "classic")
# Per core-hour, GB-hour and GPU-hour.
DEFAULT_RESOURCE_WEIGHTS = {"cpu_cores": 1.0, "memory_gb": 0.25, "storage_gb": 0.0, "gpu": 8.0}
MAX_LOOKBACK_DAYS = 730
# Shares of weights within these limits, multiplied over the levels of the tree, stay far from underflow.
LEAST_WEIGHT = 1e-6
GREATEST_WEIGHT = 1e9


@dataclass(frozen=True)
class Policy:
    """How usage becomes an order. The defaults hold for a pool that has no policy of its own."""

    half_life_days: float = 7.0
    lookback_days: int = 28
    normalisation: str = "relative"
    order: str = "tree"
    resource_weights: Mapping[str, float] = field(default_factory=dict)
    default_weight: float = 1.0

    @property
    def decay(self) -> tuple[float, int]:
        """What usage of a day counts is a matter of these alone."""
        return self.half_life_days, self.lookback_days

    @property
    def weights(self) -> list[float]:
        """One weight a resource: the policy's own, else the default."""
        return [float(self.resource_weights.get(name, DEFAULT_RESOURCE_WEIGHTS[name])) for name in RESOURCES]

    @property
    def weight_sources(self) -> dict[str, tuple[float, str]]:
        """Each resource's weight and whether it is the policy's or the default."""
        return {
            name: (weight, "policy" if name in self.resource_weights else "default")
            for name, weight in zip(RESOURCES, self.weights, strict=True)
        }


def policy_problems(values: Mapping[str, Any]) -> dict[str, str]:
    """What cannot be taken, by field; only the given fields are looked at."""
    problems: dict[str, str] = {}
    for name in ("half_life_days", "default_weight"):
        if name in values and (problem := weight_problem(values[name])):
            problems[name] = problem
    if "lookback_days" in values and not _whole_days(values["lookback_days"]):
        problems["lookback_days"] = f"Look back 1 to {MAX_LOOKBACK_DAYS} whole days."
    for name, known in (("normalisation", NORMALISATIONS), ("order", ORDERS)):
        if name in values and values[name] not in known:
            problems[name] = f"Choose one of {', '.join(known)}."
    if "resource_weights" in values and (problem := _resource_problem(values["resource_weights"])):
        problems["resource_weights"] = problem
    return problems


def weight_problem(value: Any) -> str:
    """Why a weight cannot be taken; empty when it can."""
    number = _number(value)
    if number is None:
        return f"“{value}” is not a number."
    if not LEAST_WEIGHT <= number <= GREATEST_WEIGHT:
        return f"It must be between {LEAST_WEIGHT:f} and {GREATEST_WEIGHT:,.0f}, but is {value}."
    return ""


def usable_weight(stored: float | None, default: float) -> float:
    """Return the weight to calculate with; a stored one outside of the limits must not break a calculation."""
    weight = default if stored is None or not math.isfinite(stored) else stored
    return min(max(weight, LEAST_WEIGHT), GREATEST_WEIGHT)


def _resource_problem(weights: Any) -> str:
    if not isinstance(weights, Mapping):
        return "Write a weight for each resource."
    for name, value in weights.items():
        if name not in RESOURCES:
            return f"There is no resource “{name}”; there are {', '.join(RESOURCES)}."
        number = _number(value)
        if number is None or not math.isfinite(number) or not 0 <= number <= GREATEST_WEIGHT:
            return f"The weight of {name} has to be 0 or more and finite, but is {value}."
    if not any(Policy(resource_weights=weights).weights):
        return "At least one resource needs a weight greater than 0."
    return ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _whole_days(value: Any) -> bool:
    number = _number(value)
    return (
        number is not None
        and number == int(number if math.isfinite(number) else 0.5)
        and (1 <= number <= MAX_LOOKBACK_DAYS)
    )
