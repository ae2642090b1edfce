"""Series of a chart: how many have a name and a colour of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_NAMED, MOST_NAMED = 4, 8
# Colours of the style sheet; grey is for the rest.
KINDS = (1, 2, 3, 4, 6, 7, 8, 9)
REST_KIND = 5


@dataclass(frozen=True)
class Series:
    """The values of one subject by day, or of all subjects without a name together."""

    name: str
    values: list[float]
    is_rest: bool = False

    @property
    def total(self) -> float:
        return sum(self.values)


def named_count(totals: Sequence[float], rest: float) -> int:
    """Return how many of the largest totals to name, so that the rest does not exceed the largest.

    `rest` is the sum of what is not in `totals`. If all totals do not suffice, name them all.
    """
    for count in range(min(LEAST_NAMED, len(totals)), len(totals)):
        if rest + sum(totals[count:]) <= totals[0]:
            return count
    return len(totals)


def kind_of(number: int, *, is_rest: bool = False) -> int:
    """Return the colour of a series by its position."""
    return REST_KIND if is_rest else KINDS[number % len(KINDS)]
