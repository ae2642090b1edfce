"""Reference implementation of usage recording; the database does the same in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from fairshare.arithmetic.slices import SLICE_MS, floor_slice
from lcm.domain.resources import HUNDREDTHS


class Slice(NamedTuple):
    """An interval: start and length."""

    start: int
    length: int


def split_at_boundaries(start: int, end: int) -> Iterator[Slice]:
    """Split [start, end) at every slice boundary, and so at every UTC midnight."""
    while start < end:
        slice_end = min(floor_slice(start) + SLICE_MS, end)
        yield Slice(start, slice_end - start)
        start = slice_end


def usage_units(amount: Decimal, milliseconds: int) -> int:
    """Return the usage of an amount over a time; multiplies first, so that nothing is rounded off."""
    return int(amount * HUNDREDTHS) * milliseconds
