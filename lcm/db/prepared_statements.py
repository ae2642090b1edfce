"""Prepared statements, compiled once and run often, several in one round trip.

For a lookup by key, building the query costs more than running it. Queries that every request or every
recorded observation runs are therefore compiled as SQL with parameters. PostgreSQL caches their plans too.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.expressions import Expression

T = TypeVar("T")
# A placeholder, or an escaped percent sign.
_PLACEHOLDER = re.compile("%%|%s")


class Parameter(Expression):
    """Placeholder in a queryset for a value that each run supplies."""

    def __init__(self, name: str, field: models.Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (self,)


class RawJson(str):
    """A value of a JSON column that is serialized already."""

    __slots__ = ()


@dataclass(frozen=True)
class PreparedSql:
    """SQL with a `%s` for each parameter, and the name of its prepared statement in PostgreSQL."""

    text: str
    name: str
    execute_sql: str

    @classmethod
    def from_sql(cls, text: str, parameter_count: int) -> PreparedSql:
        name = f"lcm_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
        marks = ", ".join(["%s"] * parameter_count)
        return cls(text, name, f"EXECUTE {name}({marks})" if marks else f"EXECUTE {name}")

    @property
    def prepare_sql(self) -> str:
        number = count(1)
        sql = _PLACEHOLDER.sub(lambda mark: "%" if mark[0] == "%%" else f"${next(number)}", self.text)
        return f"PREPARE {self.name} AS {sql}"


@dataclass(frozen=True)
class PreparedStatement(Generic[T]):
    """SQL with its values, and the function that converts its rows."""

    text: PreparedSql
    values: Sequence[Any]
    build_rows: Callable[[list[Any]], list[T]] | None = None


class PreparedQuery(Generic[T]):
    """A queryset with `Parameter` placeholders, compiled to SQL on first use."""

    def __init__(self, make: Callable[[], models.QuerySet[Any, T]]) -> None:
        self._make = make

    def bind(self, **given: Any) -> PreparedStatement[T]:
        compiled = self._compiled
        return PreparedStatement(compiled.text, compiled.values(given), compiled.build_rows)

    def fetch(self, **given: Any) -> list[T]:
        found: list[T] = run_statements(self.bind(**given))[0]
        return found

    @cached_property
    def _compiled(self) -> _Compiled:
        return _Compiled(self._make())


class _Compiled:
    """The SQL of a queryset and the compiler that converts its columns; shared by all threads."""

    def __init__(self, queryset: models.QuerySet[Any, Any]) -> None:
        self._connection = connections[DEFAULT_DB_ALIAS]
        self._compiler: Any = queryset.query.get_compiler(connection=self._connection)
        text, values = self._compiler.as_sql()
        columns = [each[0] for each in self._compiler.select[: self._compiler.col_count]]
        converters = self._compiler.get_converters(columns)
        vars(self._compiler)["get_converters"] = lambda _: converters
        self._parameters = [each for each in values if isinstance(each, Parameter)]
        self.text = PreparedSql.from_sql(_with_constants(text, values), len(self._parameters))
        self._queryset: Any = queryset
        self._found = threading.local()
        vars(self._queryset.query)["get_compiler"] = lambda *_, **__: self._compiler
        vars(self._compiler)["execute_sql"] = lambda *_, **__: [self._found.rows]

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        connection = self._connection
        return [
            each.output_field.get_db_prep_value(given[each.name], connection) for each in self._parameters
        ]

    def build_rows(self, rows: list[Any]) -> list[Any]:
        """Return model objects or tuples, as iterating the queryset would."""
        if not rows:
            return []
        self._found.rows = rows
        return list(self._queryset._iterable_class(self._queryset))


def _with_constants(text: str, values: Sequence[Any]) -> str:
    """Write constants into the SQL, so that only parameters stay placeholders."""
    replacements = iter(["%s" if isinstance(value, Parameter) else _constant(value) for value in values])
    return _PLACEHOLDER.sub(lambda mark: mark[0] if mark[0] == "%%" else next(replacements), text)


def _constant(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"{value!r} cannot be a constant; use a Parameter")
    return "'" + value.replace("'", "''").replace("%", "%%") + "'"


def insert_statement(model: type[models.Model], values: Mapping[str, Any]) -> PreparedStatement[Any]:
    """Return an INSERT of one row; every column without a database default needs a value."""
    text, fields = _insert(model, tuple(values))
    return PreparedStatement(text, _column_params(fields, values.values()))


def update_statement(
    model: type[models.Model], key: Any, values: Mapping[str, Any]
) -> PreparedStatement[Any]:
    """Return an UPDATE of one row by primary key."""
    text, fields = _update(model, tuple(values))
    return PreparedStatement(text, _column_params(fields, [*values.values(), key]))


def column_values(row: models.Model, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the columns of a row without its key, for `insert_statement` and `update_statement`."""
    names = [field.attname for field in row._meta.concrete_fields if not field.primary_key]
    return {name: getattr(row, name) for name in names if name not in without}


def _column_params(fields: Sequence[models.Field[Any, Any]], values: Iterable[Any]) -> list[Any]:
    connection = connections[DEFAULT_DB_ALIAS]
    return [
        str(value) if isinstance(value, RawJson) else field.get_db_prep_save(value, connection)
        for field, value in zip(fields, values, strict=True)
    ]


@lru_cache(maxsize=256)
def _insert(model: type[models.Model], names: tuple[str, ...]) -> tuple[PreparedSql, list[Any]]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join("%s" for _ in fields)
    text = f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ({marks})'  # noqa: S608
    return PreparedSql.from_sql(text, len(fields)), fields


@lru_cache(maxsize=256)
def _update(model: type[models.Model], names: tuple[str, ...]) -> tuple[PreparedSql, list[Any]]:
    fields: list[Any] = [*(model._meta.get_field(name) for name in names), model._meta.pk]
    *columns, key = (f'"{field.column}" = %s' for field in fields)
    text = f'UPDATE "{model._meta.db_table}" SET {", ".join(columns)} WHERE {key}'  # noqa: S608
    return PreparedSql.from_sql(text, len(fields)), fields


def run_statements(*statements: PreparedStatement[Any]) -> list[list[Any]]:
    """Return the rows of each statement, run in order; on PostgreSQL all in one round trip."""
    if not statements:
        return []
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            found = _run_in_one_round_trip(connection, cursor, statements)
        else:
            found = [_run_one(cursor, each) for each in statements]
    return [
        each.build_rows(rows) if each.build_rows else [] for each, rows in zip(statements, found, strict=True)
    ]


def _run_in_one_round_trip(
    connection: Any, cursor: Any, statements: Sequence[PreparedStatement[Any]]
) -> list[list[Any]]:
    if _is_pooled(connection):
        _prepare_missing(connection, statements)
        texts = [each.text.execute_sql for each in statements]
    else:
        texts = [each.text.text for each in statements]
    cursor.execute("; ".join(texts), [value for each in statements for value in each.values])
    found = []
    for each in statements:
        found.append(cursor.fetchall() if each.build_rows else [])
        cursor.nextset()
    return found


def _run_one(cursor: Any, statement: PreparedStatement[Any]) -> list[Any]:
    cursor.execute(statement.text.text, statement.values)
    return cursor.fetchall() if statement.build_rows else []


def _is_pooled(connection: Any) -> bool:
    """Whether connections are reused, so that preparing statements pays; PgBouncer may share the others."""
    return bool(connection.settings_dict["OPTIONS"].get("pool"))


# Names of the statements prepared on each driver connection; a rollback keeps them.
_PREPARED_NAMES: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def _prepare_missing(connection: Any, statements: Sequence[PreparedStatement[Any]]) -> None:
    known = _PREPARED_NAMES.setdefault(connection.connection, set())
    for each in statements:
        if each.text.name not in known:
            with connection.wrap_database_errors:
                connection.connection.execute(each.text.prepare_sql)
            known.add(each.text.name)
