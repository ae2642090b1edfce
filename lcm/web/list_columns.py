"""Columns of lists: header, cell and export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

NONE = _("none")
NEVER = _("never")


@dataclass(frozen=True)
class Column:
    """A column with its header, its cell and its value in an export."""

    label: StrOrPromise
    value: Callable[[Any], Any]
    sort: str = ""
    numeric: bool = False
    export_label: StrOrPromise = ""
    # Template of the cell's content with `row` and `value`, or a partial of the `cells` of its list;
    # without it the cell shows the value.
    cell: str = ""
    # Without a column with a class for cards (`card-…`), the first is the title of a card.
    css: str = ""
    # Unit behind an amount.
    unit: StrOrPromise | Callable[[Decimal], StrOrPromise] = ""
    # Text of a cell without a value, if its template has none. Narrow screens hide a cell with “none”.
    empty: StrOrPromise = NONE
    # Label beside the cell on narrow screens, if it is not the header.
    card_label: StrOrPromise = ""
    # Other apps refer to a column by this name.
    name: str = ""
    # Place in the two lines of a row on a phone: `side` or `below` the title, or `end` of the second line.
    phone: str = ""
    # The menu of columns offers it; by default it is not shown.
    optional: bool = False
    # A column that an app adds stands after this one; at the end if there is none.
    after: str = ""

    @cached_property
    def key(self) -> str:
        """Return the name under which settings and views store the column; independent of the language."""
        if self.name:
            return self.name
        with override(settings.LANGUAGE_CODE):
            return slugify(str(self.export_label or self.label))


def with_added(own: Sequence[Column], added: Iterable[Column], hidden: Sequence[str] = ()) -> list[Column]:
    """Insert the added columns in their order; a column takes the place of the one with its name.

    Hidden columns become optional.
    """
    columns = [replace(each, optional=True) if each.name in hidden else each for each in own]
    inserted: Counter[str] = Counter()
    for column in added:
        names = [each.name for each in columns]
        if column.name and column.name in names:
            columns[names.index(column.name)] = column
        elif column.after and column.after in names:
            inserted[column.after] += 1
            columns.insert(names.index(column.after) + inserted[column.after], column)
        else:
            columns.append(column)
    return columns
