"""The numbers of a chart for those who cannot see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ChartTable:
    """A head for the first column and one for each number; rows begin with their name."""

    first: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    # What is not in the rows, when there would be too many.
    note: str = ""
