"""Keyset pagination: a page starts after the last row of the previous one, so deep pages cost no more."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import connection
from django.db.models import F, Field, Model, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.utils.translation import gettext as _

from lcm.domain.errors import InvalidInput

M = TypeVar("M", bound=Model)
COUNT_CAP = 10_000
LARGEST = 2**63


@dataclass(frozen=True)
class RowPage(Generic[M]):
    """One page of rows, the number of rows before it, and the cursors of its neighbours."""

    rows: list[M]
    first: int
    next: str | None
    previous: str | None
    # Total number of rows, if known without a COUNT.
    total: int | None = None
    # Rows that the list counts apart.
    apart: int = 0

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def page_of(queryset: QuerySet[M], *, sort: str, size: int, cursor: str = "") -> RowPage[M]:
    """Return one page, sorted by a non-null column (`-name` for descending) and then by id."""
    column, descending = sort.removeprefix("-"), sort.startswith("-")
    position = _decode(queryset.model, column, cursor) if cursor else None
    backwards = position is not None and position.backwards
    down = descending != backwards
    mark = "-" if down else ""
    rows_of = queryset.order_by(f"{mark}{column}", f"{mark}pk")
    if position is not None:
        compare = TupleLessThan if down else TupleGreaterThan
        rows_of = rows_of.filter(compare(Tuple(F(column), F("pk")), position.values))
    if connection.vendor == "sqlite":
        rows_of = _keys_first(rows_of, column, position, down=down, size=size)
    rows = list(rows_of[: size + 1])
    more = len(rows) > size
    rows = rows[:size]
    if backwards:
        rows.reverse()
    skipped = position.skipped if position else 0
    if backwards:
        skipped = max(skipped - len(rows), 0) if more else 0
    has_next = bool(rows) and (more or backwards)
    has_previous = bool(rows) and position is not None and (more or not backwards)
    return RowPage(
        rows=rows,
        first=skipped + 1,
        next=_encode(rows[-1], column, skipped + len(rows), backwards=False) if has_next else None,
        previous=_encode(rows[0], column, skipped, backwards=True) if has_previous else None,
    )


@dataclass(frozen=True)
class OrderedKeys:
    """Keys of rows in an order that no column has, and how many of the rows a list counts apart.

    `enrich` adds data to the rows of a page that was read together with the order.
    """

    keys: Sequence[Any]
    apart: int
    enrich: Callable[[Sequence[Any]], None]


def page_of_keys(queryset: QuerySet[M], keys: Sequence[Any], *, size: int, cursor: str = "") -> RowPage[M]:
    """Return one page of rows in the order of `keys`; the cursor is an offset."""
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise InvalidInput({"cursor": _("The cursor is not valid. Start from the first page.")})
    start = int(cursor or 0)
    found = queryset.in_bulk(keys[start : start + size])
    return RowPage(
        rows=[found[key] for key in keys[start : start + size] if key in found],
        first=start + 1,
        next=str(start + size) if start + size < len(keys) else None,
        previous=str(max(start - size, 0)) if start else None,
        total=len(keys),
    )


def capped_count(queryset: QuerySet[Any], cap: int = COUNT_CAP) -> tuple[int, bool]:
    """Count rows up to the cap; return the count and whether there are more."""
    count = queryset.order_by().values("pk")[: cap + 1].count()
    return min(count, cap), count > cap


def capped_counts(
    querysets: Mapping[str, QuerySet[Any]], cap: int = COUNT_CAP
) -> dict[str, tuple[int, bool]]:
    """Return `capped_count` of several querysets by name, in one query."""
    selects, values = [], []
    for queryset in querysets.values():
        rows = queryset.order_by().values("pk")[: cap + 1]
        sql, params = rows.query.get_compiler(connection=connection).as_sql()
        selects.append(f"(SELECT COUNT(*) FROM ({sql}) AS counted)")  # noqa: S608  (made by Django)
        values += params
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(selects)}", values)
        counts = cursor.fetchone()
    return {name: (min(count, cap), count > cap) for name, count in zip(querysets, counts, strict=True)}


def _keys_first(
    rows: QuerySet[M], column: str, position: _Position | None, *, down: bool, size: int
) -> QuerySet[M]:
    """Select keys first on SQLite, whose planner would otherwise sort whole rows and scan from the start."""
    if position is not None:
        rows = rows.filter(**{f"{column}__{'lte' if down else 'gte'}": position.values[0]})
    return rows.filter(pk__in=rows.values("pk")[: size + 1])


@dataclass(frozen=True)
class _Position:
    values: tuple[Any, Any]
    skipped: int
    backwards: bool


def _encode(row: Model, column: str, skipped: int, *, backwards: bool) -> str:
    value: Any = row
    for step in column.split("__"):
        value = getattr(value, step)
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    packed = json.dumps([int(backwards), skipped, text, str(row.pk)], separators=(",", ":"))
    return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")


def _decode(model: type[Model], column: str, cursor: str) -> _Position:
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        backwards, skipped, text, pk = json.loads(packed)
        values = (_value(_field(model, column), text), _value(model._meta.pk, pk))
        if not isinstance(skipped, int) or not 0 <= skipped < LARGEST:
            raise ValueError("out of range")
        return _Position(values, skipped, bool(backwards))
    except (ValueError, TypeError, OverflowError, RecursionError, ValidationError) as error:
        raise InvalidInput({"cursor": _("The cursor is not valid. Start from the first page.")}) from error


def _value(field: Field[Any, Any], text: object) -> Any:
    """Parse a cursor value as the column's type; reject values that no row can hold."""
    value = field.to_python(text)
    if isinstance(value, datetime):
        value = value.astimezone(UTC) if value.tzinfo else None
    if isinstance(value, str) and ("\0" in value or not value.isprintable()):
        value = None
    if value is None or (isinstance(value, int) and not -LARGEST <= value < LARGEST):
        raise ValueError("no value of this column")
    return value


def _field(model: type[Model], column: str) -> Field[Any, Any]:
    *relations, name = column.split("__")
    for relation in relations:
        related = model._meta.get_field(relation).related_model
        if not isinstance(related, type):
            raise FieldDoesNotExist(column)
        model = related
    field = model._meta.get_field(name)
    assert isinstance(field, Field)
    return field
