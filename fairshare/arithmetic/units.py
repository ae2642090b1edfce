"""Usage as whole numbers: hundredths of an amount times milliseconds, so that sums are exact everywhere."""

from __future__ import annotations

from decimal import Decimal

RESOURCES = ("cpu_cores", "memory_gb", "storage_gb", "gpu")
LABELS = {"cpu_cores": "CPU", "memory_gb": "Memory", "storage_gb": "Storage", "gpu": "GPU"}
HOUR_NAMES = {
    "cpu_cores": "core-hours",
    "memory_gb": "GB-hours",
    "storage_gb": "GB-hours",
    "gpu": "GPU-hours",
}

HUNDREDTHS = 100
UNITS_A_SECOND = HUNDREDTHS * 1_000
UNITS_AN_HOUR = UNITS_A_SECOND * 3_600


def usage_units(amount: Decimal, milliseconds: int) -> int:
    """What holding an amount for a time comes to; the product first, so that nothing is lost."""
    return int(amount * HUNDREDTHS) * milliseconds


def hours(units: int | float) -> float:
    """Core-hours, GB-hours or GPU-hours, for people and for factors."""
    return float(units) / UNITS_AN_HOUR


def exact_seconds(units: int) -> Decimal:
    """Core-seconds, GB-seconds or GPU-seconds without rounding."""
    return Decimal(units) / UNITS_A_SECOND
