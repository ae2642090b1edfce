"""Usage as integers: hundredths of an amount times milliseconds, so that sums are exact."""

from __future__ import annotations

from decimal import Decimal

from lcm.domain.resources import HUNDREDTHS

UNITS_A_SECOND = HUNDREDTHS * 1_000
UNITS_AN_HOUR = UNITS_A_SECOND * 3_600


def hours(units: int | float) -> float:
    """Return core-hours, GB-hours or GPU-hours, for display and factors."""
    return float(units) / UNITS_AN_HOUR


def exact_seconds(units: int) -> Decimal:
    """Return core-seconds, GB-seconds or GPU-seconds without rounding."""
    return Decimal(units) / UNITS_A_SECOND
