"""Statements that are put together once and run often, several of them in one way to the database.

Building a query costs more than running it when it finds a row by its key. What every request and every
recording asks is therefore kept as text, with the places of what is given anew each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.expressions import Expression

T = TypeVar("T")


class Given(Expression):  # type: ignore[misc]
    """Stands in a queryset for a value that comes with each run."""

    def __init__(self, name: str, field: models.Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        return "%s", [self]


@dataclass(frozen=True)
class Statement(Generic[T]):
    """Text and values, and what is made of the rows it finds."""

    text: str
    values: Sequence[Any]
    made_of: Callable[[list[Any]], list[T]] | None = None


class Reading(Generic[T]):
    """A queryset with `Given` in it; made once for each thread, as a connection is the thread's own."""

    def __init__(self, make: Callable[[], models.QuerySet[Any, T]]) -> None:
        self._make = make
        self._of_thread = threading.local()

    def of(self, **given: Any) -> Statement[T]:
        kept: _Compiled = getattr(self._of_thread, "kept", None) or self._compile()
        return Statement(kept.text, kept.values(given), kept.made_of)

    def read(self, **given: Any) -> list[T]:
        found: list[T] = run(self.of(**given))[0]
        return found

    def _compile(self) -> _Compiled:
        self._of_thread.kept = _Compiled(self._make())
        kept: _Compiled = self._of_thread.kept
        return kept


class _Compiled:
    def __init__(self, queryset: models.QuerySet[Any, Any]) -> None:
        self._connection = connections[DEFAULT_DB_ALIAS]
        self._compiler = queryset.query.get_compiler(connection=self._connection)
        self.text, self._values = self._compiler.as_sql()
        self._given = [(n, each) for n, each in enumerate(self._values) if isinstance(each, Given)]
        self._queryset = queryset
        queryset.query.get_compiler = lambda *args, **kwargs: self._compiler  # type: ignore[method-assign]

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        values = list(self._values)
        for place, each in self._given:
            values[place] = each.output_field.get_db_prep_value(given[each.name], self._connection)
        return values

    def made_of(self, rows: list[Any]) -> list[Any]:
        """Objects or tuples, as the queryset would make them."""
        if not rows:
            return []
        self._compiler.execute_sql = lambda *args, **kwargs: [rows]
        return list(self._queryset._iterable_class(self._queryset))  # type: ignore[attr-defined]


def inserting(model: type[models.Model], values: Mapping[str, Any]) -> Statement[Any]:
    """One row; every column without a default of the database's own needs a value."""
    text, fields = _insert(model, tuple(values))
    return Statement(text, _prepared(fields, values.values()))


def updating(model: type[models.Model], key: Any, values: Mapping[str, Any]) -> Statement[Any]:
    """One row, by its key."""
    text, fields = _update(model, tuple(values))
    return Statement(text, _prepared(fields, [*values.values(), key]))


def values_of(row: models.Model, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """The columns of a row but its key, as `updating` takes them."""
    names = [field.attname for field in row._meta.concrete_fields if not field.primary_key]
    return {name: getattr(row, name) for name in names if name not in without}


def run(*statements: Statement[Any]) -> list[list[Any]]:
    """What each of them finds. PostgreSQL takes them all at once; each sees what those before it did."""
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            found = _run_together(cursor, statements)
        else:
            found = [_run_one(cursor, each) for each in statements]
    return [
        each.made_of(rows) if each.made_of else [] for each, rows in zip(statements, found, strict=True)
    ]


def _run_together(cursor: Any, statements: Sequence[Statement[Any]]) -> list[list[Any]]:
    cursor.execute("; ".join(each.text for each in statements), [v for each in statements for v in each.values])
    found = []
    for each in statements:
        found.append(cursor.fetchall() if each.made_of else [])
        cursor.nextset()
    return found


def _run_one(cursor: Any, statement: Statement[Any]) -> list[Any]:
    cursor.execute(statement.text, statement.values)
    return cursor.fetchall() if statement.made_of else []


def _prepared(fields: Sequence[models.Field[Any, Any]], values: Iterable[Any]) -> list[Any]:
    connection = connections[DEFAULT_DB_ALIAS]
    return [field.get_db_prep_save(value, connection) for field, value in zip(fields, values, strict=True)]


@lru_cache(maxsize=256)
def _insert(model: type[models.Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}"' for field in fields)  # type: ignore[union-attr]
    marks = ", ".join("%s" for _ in fields)
    return f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ({marks})', fields  # noqa: S608


@lru_cache(maxsize=256)
def _update(model: type[models.Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields = [model._meta.get_field(name) for name in names]
    key = model._meta.pk
    columns = ", ".join(f'"{field.column}" = %s' for field in fields)  # type: ignore[union-attr]
    text = f'UPDATE "{model._meta.db_table}" SET {columns} WHERE "{key.column}" = %s'  # noqa: S608
    return text, [*fields, key]
