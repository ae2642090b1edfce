"""Amounts as the scheduler counts them: whole hundredths of a core, a gigabyte, a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add as plus
from operator import neg
from typing import Any

from lcm.domain.resources import HUNDREDTHS, RESOURCE, RESOURCE_NAMES, hundredths

UNIT = HUNDREDTHS
# The first indexes of an amount; further resources of the table follow.
CPU, MEMORY, STORAGE, GPU = range(4)
# Indexes of the resources that a task may hold any part of; GPUs are held as devices.
DIVISIBLE = tuple(which for which in range(len(RESOURCE_NAMES)) if which != GPU)

# One integer per resource, in the order of RESOURCES.
Units = tuple[int, ...]
NOTHING: Units = (0,) * len(RESOURCE_NAMES)

in_units = hundredths


def amounts_of(values: Mapping[str, Any]) -> Units:
    """Return the amounts in units; resources that are not given are 0."""
    return tuple(hundredths(values.get(name, 0)) for name in RESOURCE_NAMES)


def add(left: Units, right: Units) -> Units:
    return tuple(map(plus, left, right))


def negative(amounts: Units) -> Units:
    return tuple(map(neg, amounts))


def total(rows: Iterable[Units]) -> Units:
    return reduce(add, rows, NOTHING)


def amount_text(value: float, name: str) -> str:
    """Format a number of units with its unit: “6.5 GB”."""
    return str(RESOURCE[name].amount(f"{value / UNIT:g}", 1 if value == UNIT else 2))
