"""Measured resources and their rules. Amounts are integers in hundredths of a core or GB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from lcm.domain.messages import Message, gettext
from lcm.domain.resources import RESOURCE
from lcm.domain.resources import hundredths as hundredths

CPU, MEMORY, STORAGE = "cpu_cores", "memory_gb", "storage_gb"
MEASURED = (CPU, MEMORY, STORAGE)
USED, ALLOCATED = "used", "allocated"
SOURCES = (USED, ALLOCATED)
MB_PER_GB = 1024


@dataclass(frozen=True)
class ResourceRule:
    """Rules to recommend and flag one resource: amounts in hundredths, headroom in percent."""

    step: int
    floor: int
    headroom: Mapping[str, int]
    statistic: str
    stops: bool  # whether exhausting it stops a lab instead of slowing it


RULES: dict[str, ResourceRule] = {
    CPU: ResourceRule(50, 50, {USED: 115, ALLOCATED: 115}, "decayed_p95", stops=False),
    MEMORY: ResourceRule(50, 50, {USED: 115, ALLOCATED: 100}, "max", stops=True),
    STORAGE: ResourceRule(100, 200, {USED: 110, ALLOCATED: 110}, "max", stops=True),
}

# Names of sources, as adjectives.
SOURCE_NAMES = {USED: gettext("used"), ALLOCATED: gettext("allocated")}

# Peak of a session: amount by (resource, source); unmeasured amounts are missing, never 0.
Amounts = Mapping[tuple[str, str], int]


def amount(units: int) -> Decimal:
    return Decimal(units) / 100


def gigabytes(megabytes: int) -> int:
    """Convert megabytes to hundredths of a GB, rounded up."""
    return -(-megabytes * 100 // MB_PER_GB)


def round_up(units: int, step: int) -> int:
    return -(-units // step) * step


def with_headroom(units: int, percent: int) -> int:
    return -(-units * percent // 100)


def text(units: int) -> str:
    """Format hundredths without trailing zeros: `4.3`, `24`, `0.75`."""
    whole, fraction = divmod(abs(units), 100)
    shown = f"{whole:,}.{fraction:02}".rstrip("0").rstrip(".") if fraction else f"{whole:,}"
    return f"-{shown}" if units < 0 else shown


def with_unit(resource: str, units: int) -> Message:
    """Return hundredths of a resource with their unit: `3.5 cores`, `1 core`, `2 GB`."""
    return RESOURCE[resource].amount(text(units), plural_of(units))


def plural_of(units: int) -> int:
    """Return the number that selects the form of a unit after hundredths."""
    return 1 if units == 100 else 2
