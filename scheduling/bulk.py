"""Writing many different values in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection, models

CHUNK = 2_000


def update_each(model: type[models.Model], fields: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """`rows` hold the primary key and a value for each field; one UPDATE … FROM a list of them."""
    columns = [model._meta.get_field(name) for name in fields]
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        if connection.vendor == "postgresql":
            _update_from_arrays(model, columns, chunk)
        else:
            _update_one_by_one(model, columns, chunk)


def _update_from_arrays(
    model: type[models.Model], columns: Sequence[Any], rows: Sequence[Sequence[Any]]
) -> None:
    table, key = model._meta.db_table, model._meta.pk
    kinds = [field.db_type(connection) for field in (key, *columns)]
    names = ["key", *(f"v{index}" for index in range(len(columns)))]
    arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
    assignments = ", ".join(f'"{field.column}" = new.v{index}' for index, field in enumerate(columns))
    query = (
        f'UPDATE "{table}" SET {assignments} FROM unnest({arrays}) AS new({", ".join(names)}) '  # noqa: S608
        f'WHERE "{table}"."{key.column}" = new.key'
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [list(column) for column in zip(*rows, strict=True)])


def _update_one_by_one(
    model: type[models.Model], columns: Sequence[Any], rows: Sequence[Sequence[Any]]
) -> None:
    key = model._meta.pk
    assignments = ", ".join(f'"{field.column}" = %s' for field in columns)
    query = f'UPDATE "{model._meta.db_table}" SET {assignments} WHERE "{key.column}" = %s'  # noqa: S608
    prepared = [
        [
            *(
                field.get_db_prep_save(value, connection)
                for field, value in zip(columns, values, strict=True)
            ),
            key.get_db_prep_save(pk, connection),
        ]
        for pk, *values in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(query, prepared)
