"""Validation of the JSON form of an observation. Every problem is reported with its path.

An observation of fifty nodes has about two thousand values, and thousands are posted. So each record is read
in one loop over a table of its fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from dataclasses import fields as table_of
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from typing import Any, Generic, Protocol, TypeVar

from lcm.cml.json_values import MAX_ITEMS, MAX_NUMBER, MAX_TEXT, UNSTORABLE, as_integer
from lcm.cml.ports import MAX_PORT

T = TypeVar("T")

MAX_CORES = 100_000
MAX_MEGABYTES = 10**9
MAX_PORTS = 5_000
MAX_PORT_NAME = 200
MAX_PROBLEMS = 1_000
MAX_SHOWN = 60  # characters of a wrong value or name shown in an error

OBSERVERS = ("lablet-controller", "manual")

_MOST = Decimal(MAX_NUMBER)
_unstorable_in = UNSTORABLE.search


class ObservationMalformed(ValueError):
    """The JSON is not a valid observation. `problems` maps paths to messages."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        place, problem = next(iter(problems.items()))
        others = len(problems) - 1
        more = " 1 more value is wrong." if others == 1 else f" {others:,} more values are wrong."
        super().__init__(f"{place} {problem}{more if others else ''}")
        self.problems = dict(problems)


def as_plain_text(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return None
    return value if (value.isascii() and "\x00" not in value) or not _unstorable_in(value) else None


def as_exact_decimal(value: object) -> Decimal | None:
    if not isinstance(value, str):
        value = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return _exact(value) if len(value) <= 40 else None


@lru_cache(maxsize=4096)
def _exact(text: str) -> Decimal | None:
    """Cached, because nodes of one kind have the same values."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and 0 <= number <= _MOST else None


def as_moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and moment.utcoffset() is not None else None


def as_boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def as_object(value: object) -> dict[str, object] | None:
    return value if isinstance(value, dict) else None


def as_entries(value: object) -> list[object] | None:
    return value if isinstance(value, list) and len(value) <= MAX_ITEMS else None


def as_plain_texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        return None
    if not value:
        return ()
    texts = tuple([text for item in value if (text := as_plain_text(item)) is not None])
    return texts if len(texts) == len(value) else None


def as_cores(value: object) -> Decimal | None:
    number = as_exact_decimal(value)
    return number if number is not None and number <= MAX_CORES else None


def as_observer(value: object) -> str | None:
    return value if isinstance(value, str) and value in OBSERVERS else None


@dataclass(frozen=True)
class FieldType:
    """A reader of a value, and the error text if it cannot be read."""

    read: Callable[[object], Any]
    expected: str


TEXT = FieldType(as_plain_text, f"must be text of up to {MAX_TEXT} characters")
INTEGER = FieldType(as_integer, "must be a whole number from 0")
DECIMAL = FieldType(as_exact_decimal, "must be a number from 0")
CORES = FieldType(as_cores, f"must be a number from 0 to {MAX_CORES:,}")
CPUS = FieldType(partial(as_integer, high=MAX_CORES), f"must be a whole number from 0 to {MAX_CORES:,}")
MEGABYTES = FieldType(
    partial(as_integer, high=MAX_MEGABYTES), f"must be a whole number from 0 to {MAX_MEGABYTES:,}"
)
FLAG = FieldType(as_boolean, "must be true or false")
MOMENT = FieldType(as_moment, "must be a time in ISO 8601 with a UTC offset")
OBSERVER = FieldType(as_observer, f"must be {' or '.join(OBSERVERS)}")
TEXTS = FieldType(as_plain_texts, "must be a list of texts")
OBJECT = FieldType(as_object, "must be an object")
_ENTRIES = f"must be a list of at most {MAX_ITEMS:,} entries"
_PORT = f"must be a port from 1 to {MAX_PORT}"


class Part(Protocol):
    """A field that reports problems at paths below its own."""

    def read_all(self, value: object, place: str, problems: dict[str, str]) -> Any: ...


class PortsByName:
    """Schema of a mapping from port name to port number."""

    def read_all(self, value: object, place: str, problems: dict[str, str]) -> dict[str, int]:
        if not isinstance(value, dict) or len(value) > MAX_PORTS:
            note(problems, place, f"must be an object of at most {MAX_PORTS:,} ports")
            return {}
        found = {}
        for name, port in value.items():
            number = as_integer(port, MAX_PORT)
            if not 1 <= len(name) <= MAX_PORT_NAME or as_plain_text(name) is None:
                message = f"must have a name of 1 to {MAX_PORT_NAME} characters"
                note(problems, f"{place}.{name[:MAX_SHOWN]}", message)
            elif not number:
                note(problems, f"{place}.{name[:MAX_SHOWN]}", _PORT, port)
            else:
                found[name] = number
        return found


class RecordSchema(Generic[T]):
    """Schema of a record: a reader per field, required fields, and fields with nested records.

    A missing or null field takes the record's default. An unknown field is a problem.
    """

    def __init__(
        self,
        make: type[T],
        fields: dict[str, FieldType],
        *,
        required: Sequence[str] = (),
        parts: dict[str, Part] | None = None,
    ) -> None:
        self._new = partial(object.__new__, make)
        table = table_of(make)  # type: ignore[arg-type]
        self._defaults = {each.name: each.default for each in table if each.default is not MISSING}
        self._fresh = [
            (each.name, each.default_factory) for each in table if each.default_factory is not MISSING
        ]
        self._readers = {name: kind.read for name, kind in fields.items()}
        self._expected = {name: kind.expected for name, kind in fields.items()}
        self._required = required
        self._parts = parts or {}

    @property
    def names(self) -> frozenset[str]:
        """Names of the fields that a body may have."""
        return frozenset({*self._readers, *self._parts})

    def read(self, values: object, path: str, problems: dict[str, str]) -> T:
        """Read a record. If problems were found, the result is incomplete and must not be used."""
        made, readers = self._defaults.copy(), self._readers
        if not isinstance(values, dict):
            note(problems, path or "observation", "must be an object", values)
            return self._filled(made)
        for name, value in values.items():
            read = readers.get(name)
            if read is None:
                self._read_part(name, value, path, made, problems)
            elif value is not None:
                found = read(value)
                if found is None:
                    note(problems, _place(path, name), self._expected[name], value)
                else:
                    made[name] = found
        for name in self._required:
            if name not in made and values.get(name) is None:
                note(problems, _place(path, name), "is missing")
        return self._filled(made)

    def _read_part(
        self, name: str, value: object, path: str, made: dict[str, Any], problems: dict[str, str]
    ) -> None:
        part = self._parts.get(name)
        if part is None:
            note(problems, _place(path, name[:MAX_SHOWN]), "is not a field of an observation")
        elif value is not None:
            made[name] = part.read_all(value, _place(path, name), problems)

    def _filled(self, made: dict[str, Any]) -> T:
        """Build the record directly: a frozen dataclass would set each field by a call."""
        for name, fresh in self._fresh:
            if name not in made:
                made[name] = fresh()
        record = self._new()
        vars(record).update(made)
        return record

    def read_all(self, value: object, place: str, problems: dict[str, str]) -> tuple[T, ...]:
        entries = as_entries(value)
        if entries is None:
            note(problems, place, _ENTRIES)
            return ()
        return tuple([self.read(entry, f"{place}.{index}", problems) for index, entry in enumerate(entries)])


def note(problems: dict[str, str], place: str, problem: str, value: object = None) -> None:
    """Add a problem, with the wrong value if it is short."""
    if isinstance(value, str | float) or type(value) in (bool, int):
        shown = json.dumps(value, ensure_ascii=False)
        problem += f", not {shown}" if len(shown) <= MAX_SHOWN else ""
    if len(problems) < MAX_PROBLEMS:
        problems[place] = f"{problem}."


def _place(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
