"""Histograms of samples; adding or removing a sample takes constant time.

A sample is the peak of a session. Per value a histogram keeps the number of sessions and their total weight.
Both are integers, so the order of adding does not matter and removing undoes adding exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from observations.arithmetic.measures import MEASURED, SOURCES, Amounts

HALF_LIFE = 14  # days
DAY_ZERO = date(2020, 1, 1).toordinal()
_SCALE = 2**20
_PARTS = [round(2 ** (part / HALF_LIFE) * _SCALE) for part in range(HALF_LIFE)]


def day_of(moment: datetime) -> int:
    return moment.astimezone(UTC).date().toordinal()


def decay_weight(day: int) -> int:
    """Return 2^(day / 14 days) as an integer: a sample has half the weight of one taken 14 days later."""
    doublings, part = divmod(day - DAY_ZERO, HALF_LIFE)
    weight = _PARTS[part]
    return weight << doublings if doublings >= 0 else max(weight >> -doublings, 1)


@dataclass
class Histogram:
    """Count and weight of samples by value; `squares` is the sum of squared weights."""

    bins: dict[int, tuple[int, int]] = field(default_factory=dict)
    squares: int = 0

    def add(self, value: int, weight: int, times: int = 1) -> None:
        self.squares += weight * weight * times
        count, total = self.bins.get(value, (0, 0))
        count, total = count + times, total + weight * times
        if count:
            self.bins[value] = (count, total)
        else:
            del self.bins[value]

    @property
    def n(self) -> int:
        return sum(count for count, _ in self.bins.values())

    @property
    def effective_n(self) -> float:
        """Return the equivalent number of equally weighted samples: (Σw)² / Σw²."""
        total = sum(weight for _, weight in self.bins.values())
        return total * total / self.squares if self.squares else float(self.n)

    def sorted_rows(self) -> list[tuple[int, int, int]]:
        """Return (value, count, weight) rows in ascending order of value."""
        return [(value, *self.bins[value]) for value in sorted(self.bins)]

    def above(self, limit: int) -> int:
        return sum(count for value, (count, _) in self.bins.items() if value > limit)


@dataclass
class Digest:
    """The histograms of all resources, used and allocated."""

    n: int = 0
    histograms: dict[tuple[str, str], Histogram] = field(default_factory=dict)

    def of(self, resource: str, source: str) -> Histogram:
        return self.histograms.setdefault((resource, source), Histogram())

    def add(self, amounts: Amounts, day: int) -> None:
        self._change(amounts, day, 1)

    def remove(self, amounts: Amounts, day: int) -> None:
        self._change(amounts, day, -1)

    def _change(self, amounts: Amounts, day: int, times: int) -> None:
        self.n += times
        weight = decay_weight(day)
        for (resource, source), value in amounts.items():
            self.of(resource, source).add(value, weight, times)

    def to_json(self) -> dict[str, Any]:
        """Return sorted JSON, so that equal digests are equal as JSON."""
        stored: dict[str, Any] = {"n": self.n}
        for resource, source in keys():
            histogram = self.of(resource, source)
            if rows := histogram.sorted_rows():
                stored[f"{resource} {source}"] = [list(row) for row in rows]
                stored[f"{resource} {source} squares"] = histogram.squares
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Digest:
        digest = cls(n=stored.get("n", 0))
        for resource, source in keys():
            rows = stored.get(f"{resource} {source}", ())
            histogram = digest.of(resource, source)
            histogram.bins = {value: (count, weight) for value, count, weight in rows}
            histogram.squares = stored.get(f"{resource} {source} squares", 0)
        return digest


def keys() -> Iterator[tuple[str, str]]:
    return ((resource, source) for resource in MEASURED for source in SOURCES)


def merge_digests(digests: Iterable[Digest]) -> Digest:
    """Merge the digests of several revisions."""
    merged = Digest()
    for digest in digests:
        merged.n += digest.n
        for key, histogram in digest.histograms.items():
            target = merged.of(*key)
            target.squares += histogram.squares
            for value, (count, weight) in histogram.bins.items():
                existing = target.bins.get(value, (0, 0))
                target.bins[value] = (existing[0] + count, existing[1] + weight)
    return merged
