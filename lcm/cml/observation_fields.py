"""Reading the JSON form of an observation: a value of the wrong type is refused with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from lcm.cml.reading import MAX_ITEMS, MAX_NUMBER, MAX_TEXT, as_text, as_whole

T = TypeVar("T")


class ObservationMalformed(ValueError):
    """The JSON is no observation; `path` is the place and the text says what it must be."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'observation'}: {message}")
        self.path = path


@dataclass(frozen=True)
class Fields:
    """A mapping and where it stands."""

    values: dict[str, object]
    path: str

    @classmethod
    def of(cls, values: object, path: str) -> Fields:
        if not isinstance(values, dict):
            raise ObservationMalformed(path, "must be an object.")
        return cls(values, path)

    def text(self, key: str) -> str:
        text = self.text_or_none(key)
        if text is None:
            raise self._wrong(key, "must be text")
        return text

    def text_or_none(self, key: str) -> str | None:
        return self._read(key, _text, f"must be text of up to {MAX_TEXT} characters")

    def whole_or_none(self, key: str) -> int | None:
        return self._read(key, as_whole, "must be a whole number from 0")

    def decimal_or_none(self, key: str) -> Decimal | None:
        return self._read(key, _decimal, "must be a number from 0, as text")

    def flag_or_none(self, key: str) -> bool | None:
        return self._read(key, lambda value: value if isinstance(value, bool) else None, "must be a boolean")

    def moment(self, key: str) -> datetime:
        moment = self._read(key, _moment, "must be a moment in ISO 8601 with its offset")
        if moment is None:
            raise self._wrong(key, "is missing")
        return moment

    def texts_or_none(self, key: str) -> tuple[str, ...] | None:
        return self._read(key, _texts, "must be a list of texts")

    def wholes_or_none(self, key: str) -> dict[str, int] | None:
        return self._read(key, _wholes, "must be an object of whole numbers from 0")

    def mapping_or_none(self, key: str) -> dict[str, object] | None:
        return self._read(key, lambda value: value if isinstance(value, dict) else None, "must be an object")

    def entries_or_none(self, key: str, read: Callable[[object, str], T]) -> tuple[T, ...] | None:
        values = self._read(key, _items, f"must be a list of at most {MAX_ITEMS:,} entries")
        if values is None:
            return None
        return tuple(read(value, f"{self._place(key)}[{index}]") for index, value in enumerate(values))

    def _read(self, key: str, read: Callable[[object], T | None], expected: str) -> T | None:
        value = self.values.get(key)
        if value is None:
            return None
        found = read(value)
        if found is None:
            raise self._wrong(key, expected)
        return found

    def _wrong(self, key: str, message: str) -> ObservationMalformed:
        return ObservationMalformed(self._place(key), f"{message}.")

    def _place(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and as_text(value) == value else None


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > 40:
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() and 0 <= number <= Decimal(MAX_NUMBER) else None


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and moment.utcoffset() is not None else None


def _items(value: object) -> list[object] | None:
    return value if isinstance(value, list) and len(value) <= MAX_ITEMS else None


def _texts(value: object) -> tuple[str, ...] | None:
    texts = [_text(item) for item in _items(value) or ()]
    if not isinstance(value, list) or None in texts:
        return None
    return tuple(text for text in texts if text is not None)


def _wholes(value: object) -> dict[str, int] | None:
    if not isinstance(value, dict) or len(value) > MAX_ITEMS:
        return None
    found = {key: as_whole(item) for key, item in value.items() if _text(key) is not None}
    wholes = {key: item for key, item in found.items() if item is not None}
    return wholes if len(wholes) == len(value) else None
