"""Statements that are put together once and run often, several of them in one way to the database.

Building a query costs more than running it when it finds a row by its key. What every request and every
recording asks is therefore kept as text, with the places of what is given anew each time; PostgreSQL keeps
its plan of it as well.
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
# A place for a value, or a percent sign that is meant.
_MARK = re.compile("%%|%s")


class Parameter(Expression):
    """Stands in a queryset for a value that comes with each run."""

    def __init__(self, name: str, field: models.Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (self,)


class RawJson(str):
    """A value of a JSON column that is text already, and is stored as it is."""

    __slots__ = ()


@dataclass(frozen=True)
class PreparedSql:
    """A statement with a `%s` for each value that is given, and the name PostgreSQL knows it by."""

    text: str
    name: str
    call: str

    @classmethod
    def of(cls, text: str, places: int) -> PreparedSql:
        name = f"lcm_{hashlib.sha256(text.encode()).hexdigest()[:20]}"
        marks = ", ".join(["%s"] * places)
        return cls(text, name, f"EXECUTE {name}({marks})" if marks else f"EXECUTE {name}")

    @property
    def prepared(self) -> str:
        number = count(1)
        numbered = _MARK.sub(lambda mark: "%" if mark[0] == "%%" else f"${next(number)}", self.text)
        return f"PREPARE {self.name} AS {numbered}"


@dataclass(frozen=True)
class PreparedStatement(Generic[T]):
    """A text with its values, and what is made of the rows it finds."""

    text: PreparedSql
    values: Sequence[Any]
    made_of: Callable[[list[Any]], list[T]] | None = None


class PreparedQuery(Generic[T]):
    """A queryset with `Given` in it, made into text when it is first needed."""

    def __init__(self, make: Callable[[], models.QuerySet[Any, T]]) -> None:
        self._make = make

    def of(self, **given: Any) -> PreparedStatement[T]:
        kept = self._kept
        return PreparedStatement(kept.text, kept.values(given), kept.made_of)

    def read(self, **given: Any) -> list[T]:
        found: list[T] = run_statements(self.of(**given))[0]
        return found

    @cached_property
    def _kept(self) -> _Compiled:
        return _Compiled(self._make())


class _Compiled:
    """A queryset's text, and the compiler that knows what its columns are; all threads share them."""

    def __init__(self, queryset: models.QuerySet[Any, Any]) -> None:
        self._connection = connections[DEFAULT_DB_ALIAS]
        self._compiler: Any = queryset.query.get_compiler(connection=self._connection)
        text, values = self._compiler.as_sql()
        columns = [each[0] for each in self._compiler.select[: self._compiler.col_count]]
        converters = self._compiler.get_converters(columns)
        vars(self._compiler)["get_converters"] = lambda _: converters
        self._given = [each for each in values if isinstance(each, Parameter)]
        self.text = PreparedSql.of(_with_constants(text, values), len(self._given))
        self._queryset: Any = queryset
        self._found = threading.local()
        vars(self._queryset.query)["get_compiler"] = lambda *_, **__: self._compiler
        vars(self._compiler)["execute_sql"] = lambda *_, **__: [self._found.rows]

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        connection = self._connection
        return [each.output_field.get_db_prep_value(given[each.name], connection) for each in self._given]

    def made_of(self, rows: list[Any]) -> list[Any]:
        """Objects or tuples, as the queryset would make them."""
        if not rows:
            return []
        self._found.rows = rows
        return list(self._queryset._iterable_class(self._queryset))


def _with_constants(text: str, values: Sequence[Any]) -> str:
    """What is the same in each run stands in the text; only what is given is left open."""
    written = iter(["%s" if isinstance(value, Parameter) else _constant(value) for value in values])
    return _MARK.sub(lambda mark: mark[0] if mark[0] == "%%" else next(written), text)


def _constant(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"{value!r} has to be given")
    return "'" + value.replace("'", "''").replace("%", "%%") + "'"


def insert_statement(model: type[models.Model], values: Mapping[str, Any]) -> PreparedStatement[Any]:
    """One row; every column without a default of the database's own needs a value."""
    text, fields = _insert(model, tuple(values))
    return PreparedStatement(text, _prepared(fields, values.values()))


def update_statement(
    model: type[models.Model], key: Any, values: Mapping[str, Any]
) -> PreparedStatement[Any]:
    """One row, by its key."""
    text, fields = _update(model, tuple(values))
    return PreparedStatement(text, _prepared(fields, [*values.values(), key]))


def column_values(row: models.Model, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """The columns of a row but its key, as `inserting` and `updating` take them."""
    names = [field.attname for field in row._meta.concrete_fields if not field.primary_key]
    return {name: getattr(row, name) for name in names if name not in without}


def _prepared(fields: Sequence[models.Field[Any, Any]], values: Iterable[Any]) -> list[Any]:
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
    return PreparedSql.of(text, len(fields)), fields


@lru_cache(maxsize=256)
def _update(model: type[models.Model], names: tuple[str, ...]) -> tuple[PreparedSql, list[Any]]:
    fields: list[Any] = [*(model._meta.get_field(name) for name in names), model._meta.pk]
    *columns, key = (f'"{field.column}" = %s' for field in fields)
    text = f'UPDATE "{model._meta.db_table}" SET {", ".join(columns)} WHERE {key}'  # noqa: S608
    return PreparedSql.of(text, len(fields)), fields


def run_statements(*statements: PreparedStatement[Any]) -> list[list[Any]]:
    """What each of them finds. PostgreSQL takes them all at once; each sees what those before it did."""
    if not statements:
        return []
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            found = _run_together(connection, cursor, statements)
        else:
            found = [_run_one(cursor, each) for each in statements]
    return [each.made_of(rows) if each.made_of else [] for each, rows in zip(statements, found, strict=True)]


def _run_together(
    connection: Any, cursor: Any, statements: Sequence[PreparedStatement[Any]]
) -> list[list[Any]]:
    if _is_pooled(connection):
        _prepare_missing(connection, statements)
        texts = [each.text.call for each in statements]
    else:
        texts = [each.text.text for each in statements]
    cursor.execute("; ".join(texts), [value for each in statements for value in each.values])
    found = []
    for each in statements:
        found.append(cursor.fetchall() if each.made_of else [])
        cursor.nextset()
    return found


def _run_one(cursor: Any, statement: PreparedStatement[Any]) -> list[Any]:
    cursor.execute(statement.text.text, statement.values)
    return cursor.fetchall() if statement.made_of else []


def _is_pooled(connection: Any) -> bool:
    """Whether what a connection is told is worth it: one for each request may be anybody's, too."""
    return bool(connection.settings_dict["OPTIONS"].get("pool"))


# What each connection of the driver's has been told; a rollback does not make it forget.
_PREPARED_NAMES: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def _prepare_missing(connection: Any, statements: Sequence[PreparedStatement[Any]]) -> None:
    known = _PREPARED_NAMES.setdefault(connection.connection, set())
    for each in statements:
        if each.text.name not in known:
            with connection.wrap_database_errors:
                connection.connection.execute(each.text.prepared)
            known.add(each.text.name)
