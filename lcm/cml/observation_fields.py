"""Reading the JSON form of an observation: a value of the wrong type is refused with its place.

An observation of fifty nodes has some two thousand values, and thousands are posted: a record is read by a
table of its fields, in one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from dataclasses import fields as table_of
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from lcm.cml.reading import MAX_ITEMS, MAX_NUMBER, MAX_TEXT, UNSTORABLE, as_whole

T = TypeVar("T")

_MOST = Decimal(MAX_NUMBER)
_unstorable_in = UNSTORABLE.search


class ObservationMalformed(ValueError):
    """The JSON is no observation; `path` is the place and the text says what it must be."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'observation'}: {message}")
        self.path = path


def as_plain_text(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return None
    return value if (value.isascii() and "\x00" not in value) or not _unstorable_in(value) else None


def as_exact(value: object) -> Decimal | None:
    if not isinstance(value, str):
        value = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return _exact(value) if len(value) <= 40 else None


@lru_cache(maxsize=4096)
def _exact(text: str) -> Decimal | None:
    """Kept, as nodes of a kind are given the same."""
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


def as_wholes(value: object) -> dict[str, int] | None:
    if not isinstance(value, dict) or len(value) > MAX_ITEMS:
        return None
    wholes = {
        key: whole
        for key, item in value.items()
        if as_plain_text(key) is not None and (whole := as_whole(item)) is not None
    }
    return wholes if len(wholes) == len(value) else None


@dataclass(frozen=True)
class Kind:
    """How a value is read, and what it must be when it cannot."""

    read: Callable[[object], Any]
    expected: str


TEXT = Kind(as_plain_text, f"must be text of up to {MAX_TEXT} characters")
WHOLE = Kind(as_whole, "must be a whole number from 0")
EXACT = Kind(as_exact, "must be a number from 0, as text")
FLAG = Kind(as_boolean, "must be a boolean")
MOMENT = Kind(as_moment, "must be a moment in ISO 8601 with its offset")
TEXTS = Kind(as_plain_texts, "must be a list of texts")
WHOLES = Kind(as_wholes, "must be an object of whole numbers from 0")
OBJECT = Kind(as_object, "must be an object")
_ENTRIES = f"must be a list of at most {MAX_ITEMS:,} entries"


class Form(Generic[T]):
    """A record's table: how each of its fields is read, which may not be missing, which are lists of records.

    What is missing or null has the record's default.
    """

    def __init__(
        self,
        make: type[T],
        fields: dict[str, Kind],
        *,
        needed: Sequence[str] = (),
        entries: dict[str, Form[Any]] | None = None,
    ) -> None:
        self._new = partial(object.__new__, make)
        table = table_of(make)  # type: ignore[arg-type]
        self._defaults = {each.name: each.default for each in table if each.default is not MISSING}
        self._fresh = [
            (each.name, each.default_factory) for each in table if each.default_factory is not MISSING
        ]
        self._fields = [(name, kind.read, kind.expected) for name, kind in fields.items()]
        self._needed = {name: "is missing" if fields[name] is MOMENT else "must be text" for name in needed}
        self._entries = entries or {}

    def read(self, values: object, path: str) -> T:
        if not isinstance(values, dict):
            raise ObservationMalformed(path, "must be an object.")
        given, made = values.get, self._defaults.copy()
        for name, read, expected in self._fields:
            value = given(name)
            if value is not None:
                found = read(value)
                if found is None:
                    raise _wrong(path, name, expected)
                made[name] = found
        for name, message in self._needed.items():
            if name not in made:
                raise _wrong(path, name, message)
        for name, form in self._entries.items():
            if (value := given(name)) is not None:
                made[name] = form.read_all(value, path, name)
        return self._filled(made)

    def _filled(self, made: dict[str, Any]) -> T:
        """A frozen record would set its fields one by one, each by a call."""
        for name, fresh in self._fresh:
            if name not in made:
                made[name] = fresh()
        record = self._new()
        vars(record).update(made)
        return record

    def read_all(self, value: object, path: str, name: str) -> tuple[T, ...]:
        entries = as_entries(value)
        if entries is None:
            raise _wrong(path, name, _ENTRIES)
        place = _place(path, name)
        return tuple([self.read(entry, f"{place}[{index}]") for index, entry in enumerate(entries)])


def _wrong(path: str, name: str, message: str) -> ObservationMalformed:
    return ObservationMalformed(_place(path, name), f"{message}.")


def _place(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
