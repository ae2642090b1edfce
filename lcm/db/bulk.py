"""Bulk inserts and updates in few statements, raw reads, and look-ups of many ids in one parameter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeAlias
from uuid import UUID

from django.db import connection, models
from django.db.models.lookups import In

Field: TypeAlias = "models.Field[Any, Any]"
CHUNK = 5_000


def fetch_raw_rows(queryset: models.QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a `values_list` without conversion to Python types."""
    query, params = queryset.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def insert_rows(
    model: type[models.Model],
    fields: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    same: Mapping[str, Any] | None = None,
) -> None:
    """Insert rows without creating model objects. A row has one value for each of `fields`.

    `same` holds fields that have one value in all rows. Model defaults do not apply: `fields` and `same`
    must name every column without a database default. PostgreSQL uses COPY, SQLite `executemany`.
    """
    columns = _fields(model, [*fields, *(same or ())])
    common = tuple((same or {}).values())
    if connection.vendor == "postgresql":
        _copy(model, columns, rows, common)
    else:
        marks = ", ".join("%s" for _ in columns)
        names = ", ".join(f'"{field.column}"' for field in columns)
        query = f'INSERT INTO "{model._meta.db_table}" ({names}) VALUES ({marks})'  # noqa: S608
        own = len(columns) - len(common)
        (tail,) = _converted(columns[own:], [common])
        _execute_many(query, ([*row, *tail] for row in _converted(columns[:own], rows)))


def update_rows(
    model: type[models.Model],
    fields: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    same: Mapping[str, Any] | None = None,
) -> None:
    """Update rows in one statement per chunk. A row has the primary key and one value for each of `fields`.

    `same` holds fields that have one value in all rows.
    """
    key, *columns = _fields(model, [model._meta.pk.name, *fields])
    common = {field: (same or {})[field.name] for field in _fields(model, list(same or ()))}
    if connection.vendor == "postgresql":
        for chunk in _chunks(rows):
            _update_from_arrays(model, [key, *columns], chunk, common)
    else:
        assignments = ", ".join(f'"{field.column}" = %s' for field in (*common, *columns))
        query = f'UPDATE "{model._meta.db_table}" SET {assignments} WHERE "{key.column}" = %s'  # noqa: S608
        (head,) = _converted(list(common), [list(common.values())])
        own = _converted([*columns, key], ((*each, pk) for pk, *each in rows))
        _execute_many(query, ([*head, *row] for row in own))


def delete_in_batches(rows: models.QuerySet[Any, Any], size: int) -> int:
    """Delete rows in batches, so that locks and transactions are short; return how many."""
    deleted = 0
    while keys := list(rows.values_list("pk", flat=True)[:size]):
        rows.model._default_manager.filter(pk__in=keys).delete()
        deleted += len(keys)
    return deleted


def _copy(
    model: type[models.Model],
    columns: Sequence[Field],
    rows: Iterable[Sequence[Any]],
    common: tuple[Any, ...],
) -> None:
    names = ", ".join(f'"{field.column}"' for field in columns)
    json_indexes = [index for index, field in enumerate(columns) if isinstance(field, models.JSONField)]
    # psycopg takes long to format a date and time, so it is formatted once for all rows.
    shared = [str(value) if isinstance(value, datetime) else value for value in common]
    query = f'COPY "{model._meta.db_table}" ({names}) FROM STDIN'
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(query) as copy:
        for own in rows:
            row = [*own, *shared]
            for index in json_indexes:
                row[index] = _json(row[index])
            copy.write_row(row)


def _json(value: object) -> str | None:
    if value is None:
        return None
    return "{}" if value == {} else json.dumps(value)


def _update_from_arrays(
    model: type[models.Model],
    columns: Sequence[Field],
    rows: Sequence[Sequence[Any]],
    common: Mapping[Field, Any],
) -> None:
    table = model._meta.db_table
    arrays = ", ".join(f"%s::{field.db_type(connection)}[]" for field in columns)
    names = ", ".join(f"v{index}" for index in range(len(columns)))
    own = [f'"{field.column}" = new.v{index}' for index, field in enumerate(columns) if index]
    assignments = ", ".join([*(f'"{field.column}" = %s' for field in common), *own])
    query = (
        f'UPDATE "{table}" SET {assignments} FROM unnest({arrays}) AS new({names}) '  # noqa: S608
        f'WHERE "{table}"."{columns[0].column}" = new.v0'
    )
    values = [
        [field.get_db_prep_save(value, connection) for value in column]
        if isinstance(field, models.JSONField)
        else list(column)
        for field, column in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    with connection.cursor() as cursor:
        shared = [field.get_db_prep_save(value, connection) for field, value in common.items()]
        cursor.execute(query, [*shared, *values])


def ids_subquery(ids: Iterable[UUID | str]) -> tuple[str, Any]:
    """Return a subquery that selects many ids from one parameter, and that parameter."""
    if connection.vendor == "postgresql":
        return "SELECT unnest(%s::uuid[])", list(ids)
    return "SELECT value FROM json_each(%s)", json.dumps([_hex(key) for key in ids])


def _execute_many(query: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor:
        for chunk in _chunks(rows):
            cursor.executemany(query, chunk)


def _converted(columns: Sequence[Field], rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    """Return the rows with values for SQLite."""
    converters = [_converter(field) for field in columns]
    for row in rows:
        yield [convert(value) for convert, value in zip(converters, row, strict=True)]


# Fields whose values SQLite's driver takes without conversion, enum members included.
_UNCONVERTED = (
    models.CharField,
    models.TextField,
    models.IntegerField,
    models.FloatField,
    models.BooleanField,
)


def _converter(field: Field) -> Callable[[Any], Any]:
    """Return a converter to SQLite values; choosing it once per column is faster than `get_db_prep_save`."""
    kind = field.target_field if isinstance(field, models.ForeignKey) else field
    if isinstance(kind, models.UUIDField):
        return _hex
    if isinstance(kind, models.JSONField):
        return _json
    if isinstance(kind, _UNCONVERTED):
        return _unchanged
    return partial(field.get_db_prep_save, connection=connection)


def _hex(key: UUID | str | None) -> str | None:
    return key.hex if isinstance(key, UUID) else key and key.replace("-", "")


def _unchanged(value: object) -> Any:
    return value


def _chunks(rows: Iterable[Any]) -> Iterable[list[Any]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


def _fields(model: type[models.Model], names: Sequence[str]) -> list[Field]:
    return [model._meta.get_field(name) for name in names]  # type: ignore[misc]


@models.UUIDField.register_lookup
@models.ForeignKey.register_lookup
class Among(In):
    """`pk__among=keys`: like `in`, but PostgreSQL gets all keys as one array parameter."""

    lookup_name = "among"

    def get_prep_lookup(self) -> list[Any]:
        """Return the keys unconverted; `In` converts them later for databases without arrays."""
        return [getattr(key, "pk", key) for key in self.rhs]

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        lhs, params = self.process_lhs(compiler, connection)
        return f"{lhs} = ANY(%s::uuid[])", [*params, self.get_prep_lookup()]
