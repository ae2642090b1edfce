"""Data tables of charts, for screen readers and for reading exact numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext


@dataclass(frozen=True)
class ChartTable:
    """A header for the first column and one per number; each row begins with its name."""

    first: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    # Note about rows that are left out because there are too many.
    note: str = ""

    @property
    def body(self) -> SafeString:
        """Render the rows in one go: some pages have hundreds."""
        return mark_safe("".join(map(_row, self.rows)))  # noqa: S308  (escaped below)


def newest_rows_note(shown: int, total: int) -> str:
    """Return that a table has only the newest rows; empty if it has all."""
    if total <= shown:
        return ""
    return gettext("The newest %(shown)s of %(total)s.") % {"shown": shown, "total": f"{total:,}"}


def _row(row: tuple[str, Sequence[str]]) -> str:
    name, values = row
    cells = "".join([f'<td class="num">{escape(value)}</td>' for value in values])
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
