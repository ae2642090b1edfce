"""Writing many rows in few statements, and reading many without making anything of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeAlias
from uuid import UUID

from django.db import connection, models
from django.db.models.lookups import In

Field: TypeAlias = "models.Field[Any, Any]"
CHUNK = 5_000


def fetch_raw_rows(queryset: models.QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """What `values_list` asks for, as the database gives it: text and numbers need no conversion."""
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
    """Rows of one value a field, without making model objects; what is not named needs a default in `rows`.

    What `same` names gets one value in all of them. PostgreSQL takes them as a COPY, others as one prepared
    INSERT. The constraints hold as always.
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
        _execute_many(query, columns[:own], rows, after=_prepared(columns[own:], common))


def update_rows(
    model: type[models.Model],
    fields: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    same: Mapping[str, Any] | None = None,
) -> None:
    """`rows` hold the primary key and a value for each field; one UPDATE … FROM a list of them.

    What `same` names gets one value in all of them.
    """
    key, *columns = _fields(model, [model._meta.pk.name, *fields])
    common = {field: (same or {})[field.name] for field in _fields(model, list(same or ()))}
    if connection.vendor == "postgresql":
        for chunk in _chunks(rows):
            _update_from_arrays(model, [key, *columns], chunk, common)
    else:
        assignments = ", ".join(f'"{field.column}" = %s' for field in (*common, *columns))
        query = f'UPDATE "{model._meta.db_table}" SET {assignments} WHERE "{key.column}" = %s'  # noqa: S608
        before = _prepared(list(common), list(common.values()))
        _execute_many(query, [*columns, key], ((*each, pk) for pk, *each in rows), before=before)


def _copy(
    model: type[models.Model],
    columns: Sequence[Field],
    rows: Iterable[Sequence[Any]],
    common: tuple[Any, ...],
) -> None:
    """Lines of text, made here: what is the same in all of them is put into words once."""
    names = ", ".join(f'"{field.column}"' for field in columns)
    own = len(columns) - len(common)
    json_at = [index for index, field in enumerate(columns[:own]) if isinstance(field, models.JSONField)]
    shared = [
        _word(_json(value) if isinstance(field, models.JSONField) else value)
        for field, value in zip(columns[own:], common, strict=True)
    ]
    end = "".join(f"\t{word}" for word in shared) + "\n"
    query = f'COPY "{model._meta.db_table}" ({names}) FROM STDIN'
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(query) as copy:
        for chunk in _chunks(rows):
            copy.write("".join([_line(row, json_at) + end for row in chunk]))


def _line(row: Sequence[Any], json_at: Sequence[int]) -> str:
    if json_at:
        row = list(row)
        for index in json_at:
            row[index] = _json(row[index])
    return "\t".join([_word(value) for value in row])


# A field of a COPY ends at a tab and a row at a line break.
_MARKS = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _word(value: Any) -> str:
    """A value as COPY reads it."""
    if isinstance(value, str):
        return value.translate(_MARKS)
    if value is None:
        return "\\N"
    return value.hex if isinstance(value, UUID) else str(value)


def _json(value: Any) -> str | None:
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
    values = [_array(field, column) for field, column in zip(columns, zip(*rows, strict=True), strict=True)]
    with connection.cursor() as cursor:
        shared = [field.get_db_prep_save(value, connection) for field, value in common.items()]
        cursor.execute(query, [*shared, *values])


def _array(field: Field, column: Sequence[Any]) -> Any:
    if isinstance(field, models.JSONField):
        return [field.get_db_prep_save(value, connection) for value in column]
    is_key = field.db_type(connection) == "uuid" and None not in column
    return uuid_array(column) if is_key else list(column)


def ids_subquery(ids: Iterable[UUID | str]) -> tuple[str, str]:
    """Many ids as one parameter: what a statement selects them from, and the parameter."""
    if connection.vendor == "postgresql":
        return "SELECT unnest(%s::uuid[])", uuid_array(ids)
    return "SELECT value FROM json_each(%s)", json.dumps([_hex(key) for key in ids])


def _execute_many(
    query: str,
    columns: Sequence[Field],
    rows: Iterable[Sequence[Any]],
    *,
    before: Sequence[Any] = (),
    after: Sequence[Any] = (),
) -> None:
    """A run of the statement for each row; what comes before and after its own values is the same in all."""
    makers = [_maker(field) for field in columns]
    prepared = (
        [*before, *[make(value) for make, value in zip(makers, row, strict=True)], *after] for row in rows
    )
    with connection.cursor() as cursor:
        for chunk in _chunks(prepared):
            cursor.executemany(query, chunk)


def _prepared(columns: Sequence[Field], values: Sequence[Any]) -> list[Any]:
    return [_maker(field)(value) for field, value in zip(columns, values, strict=True)]


# What SQLite's driver takes as it is, members of enumerations too.
_AS_IT_IS = (models.CharField, models.TextField, models.IntegerField, models.FloatField, models.BooleanField)


def _maker(field: Field) -> Callable[[Any], Any]:
    """Makes SQLite's values of a field's; Django's own way looks at each as if it knew nothing of it."""
    kind = field.target_field if isinstance(field, models.ForeignKey) else field
    if isinstance(kind, models.UUIDField):
        return _hex
    if isinstance(kind, models.JSONField):
        return _json
    if isinstance(kind, _AS_IT_IS):
        return _same
    return partial(field.get_db_prep_save, connection=connection)


def _hex(key: UUID | str | None) -> str | None:
    return key.hex if isinstance(key, UUID) else key and key.replace("-", "")


def _same(value: Any) -> Any:
    return value


def _chunks(rows: Iterable[Any]) -> Iterable[list[Any]]:
    waiting = iter(rows)
    while chunk := list(islice(waiting, CHUNK)):
        yield chunk


def _fields(model: type[models.Model], names: Sequence[str]) -> list[Field]:
    return [model._meta.get_field(name) for name in names]  # type: ignore[misc]


@models.UUIDField.register_lookup
@models.ForeignKey.register_lookup
class Among(In):
    """`pk__among=keys`: as `in`, but thousands of keys go to PostgreSQL as one array, not as a word each."""

    lookup_name = "among"

    def get_prep_lookup(self) -> list[Any]:
        """The keys as they are: a database that takes no arrays looks at each later."""
        return [getattr(key, "pk", key) for key in self.rhs]

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        lhs, params = self.process_lhs(compiler, connection)
        return f"{lhs} = ANY(%s::uuid[])", [*params, uuid_array(self.rhs)]


def uuid_array(keys: Iterable[Any]) -> str:
    """Ids, or their text, as PostgreSQL writes an array; the driver would look at every one."""
    return "{" + ",".join([key if isinstance(key, str) else key.hex for key in keys]) + "}"
