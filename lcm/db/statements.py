"""Hand-written SQL for the few statements where building a queryset costs more than the database does.

On PostgreSQL several statements run in one round trip, in a pipeline of psycopg. On connections of the
pool psycopg also prepares frequent statements (`prepare_threshold`). SQLite runs one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from typing import Any, Generic, TypeVar
from uuid import UUID

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, models

T = TypeVar("T")
M = TypeVar("M", bound=models.Model)


class RawJson(str):
    """A value of a JSON column that is serialized already."""

    __slots__ = ()


@dataclass(frozen=True)
class Statement(Generic[T]):
    """SQL with a `%s` for each value, and the function that builds its result from the rows of a SELECT."""

    sql: str
    values: Sequence[Any]
    build: Callable[[list[Any]], T] | None = None


class Columns(Generic[M]):
    """Columns of a model in a SELECT, and their values as Python types."""

    def __init__(self, model: type[M], names: Iterable[str]) -> None:
        self._model = model
        self._fields: list[Any] = [model._meta.get_field(name) for name in names]
        self._names = [field.attname for field in self._fields]
        table = model._meta.db_table
        self.sql = ", ".join(f'"{table}"."{field.column}"' for field in self._fields)

    @classmethod
    def of_object(
        cls, model: type[M], only: Iterable[str] | None = None, without: Iterable[str] = ()
    ) -> Columns[M]:
        """Return the columns of all fields, or the key and `only` these fields, in the order of the model."""
        included = {field.name for field in model._meta.concrete_fields} if only is None else {*only}
        fields = [each for each in model._meta.concrete_fields if each.primary_key or each.name in included]
        return cls(model, [field.name for field in fields if field.name not in {*without}])

    def __len__(self) -> int:
        return len(self._fields)

    def to_object(self, row: Sequence[Any]) -> M:
        """Return a model object; fields that were not read are deferred. Needs columns of `of_object`."""
        return self._model.from_db(DEFAULT_DB_ALIAS, self._names, self.to_values(row))

    def to_values(self, row: Sequence[Any]) -> list[Any]:
        values = list(row)
        for index, convert in self._converters:
            if values[index] is not None:
                values[index] = convert(values[index])
        return values

    def to_objects(self, rows: Iterable[Sequence[Any]]) -> list[M]:
        return [self.to_object(row) for row in rows]

    def to_rows(self, rows: Iterable[Sequence[Any]]) -> list[Any]:
        return [self.to_values(row) for row in rows]

    @cached_property
    def _converters(self) -> list[tuple[int, Callable[[Any], Any]]]:
        found = enumerate(map(_converter, self._fields))
        return [(index, convert) for index, convert in found if convert is not None]


def _converter(field: object) -> Callable[[Any], Any] | None:
    """Return the conversion from the driver's type to the field's; None if they are the same."""
    while isinstance(field, models.ForeignKey):
        field = field.target_field
    if isinstance(field, models.JSONField):
        return partial(json.loads, cls=field.decoder)
    if connection.vendor == "postgresql":
        return None
    if isinstance(field, models.UUIDField):
        return UUID
    if isinstance(field, models.DateTimeField):
        return lambda value: value.replace(tzinfo=UTC)
    if isinstance(field, models.DecimalField):
        unit = Decimal(1).scaleb(-(field.decimal_places or 0))
        return lambda value: Decimal(value).quantize(unit)
    return None


def lock_clause(clause: str) -> str:
    """Return the clause, such as `FOR UPDATE`; nothing for SQLite, where a transaction locks the database."""
    return clause if connection.vendor == "postgresql" else ""


def insert_statement(model: type[models.Model], values: Mapping[str, Any]) -> Statement[None]:
    """Return an INSERT of one row; every column without a database default needs a value."""
    sql, fields = _insert(model, tuple(values))
    return Statement(sql, _column_values(fields, values.values()))


def update_statement(model: type[models.Model], key: object, values: Mapping[str, Any]) -> Statement[None]:
    """Return an UPDATE of one row by primary key."""
    sql, fields = _update(model, tuple(values))
    return Statement(sql, _column_values(fields, [*values.values(), key]))


def column_values(row: models.Model, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the columns of a row without its key, for `insert_statement` and `update_statement`."""
    names = [field.attname for field in row._meta.concrete_fields if not field.primary_key]
    return {name: getattr(row, name) for name in names if name not in without}


def _column_values(fields: Sequence[models.Field[Any, Any]], values: Iterable[Any]) -> list[Any]:
    return [
        str(value) if isinstance(value, RawJson) else field.get_db_prep_save(value, connection)
        for field, value in zip(fields, values, strict=True)
    ]


@lru_cache(maxsize=256)
def _insert(model: type[models.Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join("%s" for _ in fields)
    return f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ({marks})', fields  # noqa: S608


@lru_cache(maxsize=256)
def _update(model: type[models.Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields: list[Any] = [*(model._meta.get_field(name) for name in names), model._meta.pk]
    *columns, key = (f'"{field.column}" = %s' for field in fields)
    return f'UPDATE "{model._meta.db_table}" SET {", ".join(columns)} WHERE {key}', fields  # noqa: S608


def run_statements(*statements: Statement[Any]) -> list[Any]:
    """Return the result of each statement, run in order; on PostgreSQL all in one round trip."""
    if not statements:
        return []
    run = _run_in_pipeline if connection.vendor == "postgresql" else _run_one_by_one
    found = run(statements)
    return [each.build(rows) if each.build else None for each, rows in zip(statements, found, strict=True)]


def _run_in_pipeline(statements: Sequence[Statement[Any]]) -> list[list[Any]]:
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    driver: psycopg.Connection[Any] = connection.connection
    # Not Django's cursor: it writes the values into the SQL, so that no statement could be prepared.
    cursors = [psycopg.Cursor(driver) for _ in statements]
    with connection.wrap_database_errors:
        with driver.pipeline():
            for cursor, each in zip(cursors, statements, strict=True):
                cursor.execute(each.sql, each.values)
        return [
            cursor.fetchall() if each.build else [] for cursor, each in zip(cursors, statements, strict=True)
        ]


def _run_one_by_one(statements: Sequence[Statement[Any]]) -> list[list[Any]]:
    results = []
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(
                each.sql, [value.hex if isinstance(value, UUID) else value for value in each.values]
            )
            results.append(cursor.fetchall() if each.build else [])
    return results
