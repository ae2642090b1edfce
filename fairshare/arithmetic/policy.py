"""A fair-share policy as plain values, and its validation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lcm.domain.messages import Message, gettext
from lcm.domain.resources import RESOURCE_NAMES, RESOURCES

NORMALISATIONS = ("relative", "capacity")
ORDERS = ("tree", "classic")
# Per core-hour, GB-hour and GPU-hour.
DEFAULT_RESOURCE_WEIGHTS = {each.name: each.hour_weight for each in RESOURCES}
MAX_LOOKBACK_DAYS = 730
# The finest decay is by hour.
LEAST_HALF_LIFE_DAYS = 1 / 24
# The product over all levels of shares from weights within these limits does not underflow.
LEAST_WEIGHT = 1e-6
GREATEST_WEIGHT = 1e9
# The subject has no share of its own, as with Slurm's `fairshare=parent`.
PARENT = "parent"
# Weight of a domain, project or person: a number, “parent”, or None for the policy's default.
Weight: TypeAlias = float | str | None
GREATEST_DAMPENING = 65_535


@dataclass(frozen=True)
class Policy:
    """How usage determines the order. The defaults apply to pools without a policy of their own."""

    half_life_days: float = 7.0
    lookback_days: int = 28
    normalisation: str = "relative"
    order: str = "tree"
    resource_weights: Mapping[str, float] = field(default_factory=dict)
    default_weight: float = 1.0
    dampening_factor: int = 1

    @property
    def decay(self) -> tuple[float, int]:
        """Return half-life and lookback, which alone determine how usage decays."""
        return self.half_life_days, self.lookback_days

    @property
    def decays_by_hour(self) -> bool:
        """Return whether usage decays by hour, which half-lives under a day require."""
        return self.half_life_days < 1

    @property
    def weights(self) -> list[float]:
        """Return one weight per resource: the policy's own, else the default."""
        weights = {**DEFAULT_RESOURCE_WEIGHTS, **self.resource_weights}
        return [float(weights[name]) for name in RESOURCE_NAMES]

    @property
    def weight_sources(self) -> dict[str, tuple[float, str]]:
        """Return each resource's weight and whether it comes from the policy or the default."""
        return {
            name: (weight, "policy" if name in self.resource_weights else "default")
            for name, weight in zip(RESOURCE_NAMES, self.weights, strict=True)
        }


def policy_problems(values: Mapping[str, Any]) -> dict[str, Message]:
    """Return the problems by field; only the given fields are validated."""
    problems: dict[str, Message] = {}
    if "default_weight" in values and (problem := weight_problem(values["default_weight"])):
        problems["default_weight"] = problem
    if "half_life_days" in values and not _is_half_life(values["half_life_days"]):
        problems["half_life_days"] = gettext(
            "It must be between 1 hour (%(least)s days) and %(most)s days, but is %(value)s.",
            least=f"{LEAST_HALF_LIFE_DAYS:.4f}",
            most=f"{GREATEST_WEIGHT:,.0f}",
            value=values["half_life_days"],
        )
    if "lookback_days" in values and not _whole(values["lookback_days"], MAX_LOOKBACK_DAYS):
        problems["lookback_days"] = gettext("Must be 1 to %(most)s whole days.", most=MAX_LOOKBACK_DAYS)
    if "dampening_factor" in values and not _whole(values["dampening_factor"], GREATEST_DAMPENING):
        problems["dampening_factor"] = gettext(
            "It must be a whole number from 1 to %(most)s, but is %(value)s.",
            most=f"{GREATEST_DAMPENING:,}",
            value=values["dampening_factor"],
        )
    for name, known in (("normalisation", NORMALISATIONS), ("order", ORDERS)):
        if name in values and values[name] not in known:
            problems[name] = gettext("Choose one of %(allowed)s.", allowed=", ".join(known))
    if "resource_weights" in values and (problem := _resource_problem(values["resource_weights"])):
        problems["resource_weights"] = problem
    return problems


def weight_problem(value: object) -> Message | None:
    """Return why a weight is invalid; None if it is valid."""
    if _number(value) is None:
        return gettext("“%(value)s” is not a number.", value=value)
    if _is_in_range(value):
        return None
    return gettext("It must be between %(least)s and %(most)s, but is %(value)s.", **_range(value))


def share_problem(value: object) -> Message | None:
    """Return why a domain, project or person cannot have this weight; 0 and “parent” are weights too."""
    if value == PARENT or _number(value) == 0 or _is_in_range(value):
        return None
    if _number(value) is None:
        return gettext("“%(value)s” is not a number; 0 and “parent” can be used too.", value=value)
    return gettext(
        "It must be between %(least)s and %(most)s, but is %(value)s; 0 and “parent” can be used too.",
        **_range(value),
    )


def _is_in_range(value: object) -> bool:
    number = _number(value)
    return number is not None and LEAST_WEIGHT <= number <= GREATEST_WEIGHT


def _range(value: object) -> dict[str, object]:
    return {"least": f"{LEAST_WEIGHT:f}", "most": f"{GREATEST_WEIGHT:,.0f}", "value": value}


def read_weight(value: Any) -> Weight:
    """Return a validated value as a weight."""
    return value if value is None or value == PARENT else float(value)


def usable_weight(stored: Weight, default: float) -> float:
    """Return the weight to calculate with, limited to the valid range even if the stored one is not."""
    if stored == 0:
        return 0.0
    known = isinstance(stored, int | float) and math.isfinite(stored)
    weight = float(stored) if known and stored is not None else default
    return min(max(weight, LEAST_WEIGHT), GREATEST_WEIGHT)


def _resource_problem(weights: object) -> Message | None:
    if not isinstance(weights, Mapping):
        return gettext("Enter a weight for each resource.")
    for name, value in weights.items():
        if name not in RESOURCE_NAMES:
            return gettext(
                "Unknown resource “%(name)s”; use one of %(allowed)s.",
                name=name,
                allowed=", ".join(RESOURCE_NAMES),
            )
        number = _number(value)
        if number is None or not math.isfinite(number) or not 0 <= number <= GREATEST_WEIGHT:
            return gettext(
                "The weight of %(name)s must be finite and 0 or more, but is %(value)s.",
                name=name,
                value=value,
            )
    if not any(Policy(resource_weights=weights).weights):
        return gettext("At least one resource needs a weight greater than 0.")
    return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _is_half_life(value: object) -> bool:
    number = _number(value)
    # One hour in days is commonly written as 0.0417.
    return number is not None and LEAST_HALF_LIFE_DAYS - 1e-4 <= number <= GREATEST_WEIGHT


def _whole(value: object, most: int) -> bool:
    number = _number(value)
    return (
        number is not None
        and number == int(number if math.isfinite(number) else 0.5)
        and (1 <= number <= most)
    )
