"""The numbers of a chart for those who cannot see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe


@dataclass(frozen=True)
class ChartTable:
    """A head for the first column and one for each number; rows begin with their name."""

    first: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    # What is not in the rows, when there would be too many.
    note: str = ""

    @property
    def body(self) -> SafeString:
        """The rows as text at once: there are hundreds on some pages."""
        return mark_safe("".join(map(_row, self.rows)))  # noqa: S308  (escaped below)


def _row(row: tuple[str, Sequence[str]]) -> str:
    name, values = row
    cells = "".join([f'<td class="num">{escape(value)}</td>' for value in values])
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
