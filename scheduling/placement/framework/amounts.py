"""Amounts of resources as integers: hundredths of a core, a gigabyte, a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

RESOURCES = ("cpu_cores", "memory_gb", "storage_gb", "gpu")
CPU, MEMORY, STORAGE, GPU = range(4)
UNIT = 100
WORDS = {"cpu_cores": "CPU", "memory_gb": "memory", "storage_gb": "storage", "gpu": "GPU"}
UNITS = {"cpu_cores": "cores", "memory_gb": "GB", "storage_gb": "GB", "gpu": "GPUs"}

# One integer per resource, in the order of RESOURCES.
Amounts = tuple[int, int, int, int]
NOTHING: Amounts = (0, 0, 0, 0)


def amounts_of(values: Mapping[str, Any]) -> Amounts:
    """Return the amounts in units; resources that are not given are 0."""
    cpu, memory, storage, gpu = (in_units(values.get(name, 0)) for name in RESOURCES)
    return cpu, memory, storage, gpu


def in_units(value: Any) -> int:
    """Return hundredths, rounded up, so that nothing is promised twice."""
    exact = (value if isinstance(value, Decimal) else Decimal(str(value))) * UNIT
    whole = int(exact)
    return whole if whole == exact else whole + 1


def as_numbers(amounts: Iterable[int]) -> dict[str, float]:
    """Return the amounts as decimal numbers."""
    return {name: value / UNIT for name, value in zip(RESOURCES, amounts, strict=True)}


def add(left: Amounts, right: Amounts) -> Amounts:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3]


def negative(amounts: Amounts) -> Amounts:
    return -amounts[0], -amounts[1], -amounts[2], -amounts[3]


def total(many: Iterable[Amounts]) -> Amounts:
    found = NOTHING
    for each in many:
        found = add(found, each)
    return found


def amount_text(value: float, name: str) -> str:
    """Format a number of units with its unit: “6.5 GB”."""
    unit = UNITS[name]
    return f"{value / UNIT:g} {unit.removesuffix('s') if value == UNIT else unit}"
