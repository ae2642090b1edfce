"""Tolerant readers of JSON values. A value of the wrong type reads as None or empty."""

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal

MAX_WHOLE = 2**53
MAX_NUMBER = 1e15
MAX_TEXT = 1_000
MAX_ITEMS = 10_000
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Json = Mapping[str, object]


class NotJson(ValueError):
    """The text is not JSON that LCM accepts."""


def parse_json(text: str | bytes) -> object:
    """Parse JSON. Rejects NaN, Infinity and excessive nesting."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)[:200] or "nested too deeply") from None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def as_text(value: object, limit: int = MAX_TEXT) -> str | None:
    """Return a text that a database can store, truncated to the limit."""
    if not isinstance(value, str):
        return None
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value[:limit])


def as_integer(value: object, high: int = MAX_WHOLE) -> int | None:
    """Return a whole number from 0 up. A float counts if it is exact."""
    if type(value) is int:  # fast path for the usual type
        return value if 0 <= value <= high else None
    if isinstance(value, float) and value.is_integer():
        value = int(value) if abs(value) <= MAX_WHOLE else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= high:
        return value
    return None


def as_number(value: object, high: float = MAX_NUMBER) -> float | None:
    """Return a finite number from 0 up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= high:
        return None
    return float(value) if math.isfinite(value) else None


def as_decimal(value: object, high: float = MAX_NUMBER) -> Decimal | None:
    """Return a finite number from 0 up, as written."""
    number = as_number(value, high)
    return None if number is None else Decimal(str(value))


def as_bool(value: object) -> bool | None:
    """Return true or false; None for any other type."""
    return value if isinstance(value, bool) else None


def as_mapping(value: object) -> Json:
    """Return a mapping; empty for any other type."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return a list; empty for any other type."""
    return value[:MAX_ITEMS] if isinstance(value, list) else []


def as_texts(value: object) -> tuple[str, ...]:
    """Return the texts in a list, without other values."""
    return tuple(text for item in as_list(value) if (text := as_text(item)) is not None)


def plain_numbers(values: Json, most: int = 64) -> dict[str, float | int]:
    """Return the finite numbers of a mapping by name, including negative ones."""
    found: dict[str, float | int] = {}
    for key, value in values.items():
        if len(found) >= most:
            break
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if abs(value) <= MAX_NUMBER:
            found[as_text(key, 100) or ""] = value
    return found
