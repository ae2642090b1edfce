"""JSON of CML as tolerant types: a value of the wrong type reads as None or empty."""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import SkipValidation, TypeAdapter
from pydantic_core import CoreSchema, core_schema

from lcm.domain.validation import MAX_WHOLE, NO_NUL, Reads, number_schema, whole_number

MAX_NUMBER = 1e15
MAX_TEXT = 1_000
MAX_ITEMS = 10_000
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Json = Mapping[str, object]
T = TypeVar("T")


class NotJson(ValueError):
    """The text is not JSON that LCM accepts."""


def parse_json(text: str | bytes) -> object:
    """Parse JSON. Rejects NaN, Infinity and excessive nesting."""
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)[:200] or "nested too deeply") from None


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def as_text(value: object, limit: int = MAX_TEXT) -> str | None:
    """Return a text that a database can store, truncated to the limit."""
    if not isinstance(value, str):
        return None
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value[:limit])


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
    numbers: dict[str, float | int] = {}
    for key, value in values.items():
        if len(numbers) >= most:
            break
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if abs(value) <= MAX_NUMBER:
            numbers[as_text(key, 100) or ""] = value
    return numbers


# Types of fields; a method `read` of a model fills them.


def _or_none(schema: CoreSchema) -> Reads:
    nullable = core_schema.nullable_schema(schema)
    return Reads(core_schema.with_default_schema(nullable, default=None, on_error="default"), {})


def integer(high: int = MAX_WHOLE, times: int = 1) -> Reads:
    """Return the type of whole numbers from 0 up, multiplied. A float counts if it is exact."""
    whole = whole_number(0, high).schema
    assert whole is not None
    return _or_none(
        core_schema.no_info_after_validator_function(times.__mul__, whole) if times > 1 else whole
    )


def number(convert: Callable[[float], Any], high: float = MAX_NUMBER) -> Reads:
    """Return the type of numbers from 0 up, converted."""
    return _or_none(core_schema.no_info_after_validator_function(convert, number_schema(ge=0, le=high)))


def decimal(high: float = MAX_NUMBER) -> Reads:
    """Return the type of numbers from 0 up, as written."""
    return number(lambda value: Decimal(str(value)), high)


def _lenient(schema: CoreSchema, otherwise: Callable[[Any], Any]) -> Reads:
    """Return the type of values that pydantic reads on its own, or else a function."""
    slow = core_schema.no_info_plain_validator_function(otherwise)
    return Reads(core_schema.union_schema([schema, slow], mode="left_to_right"), {})


_TEXT = core_schema.str_schema(strict=True, max_length=MAX_TEXT, pattern=NO_NUL)
_TEXTS = core_schema.tuple_variable_schema(_TEXT, max_length=MAX_ITEMS)

Text = Annotated[str | None, _lenient(core_schema.nullable_schema(_TEXT), as_text)]
TextOrEmpty = Annotated[str, _lenient(_TEXT, lambda value: as_text(value) or "")]
Texts = Annotated[tuple[str, ...], _lenient(_TEXTS, as_texts)]
Integer = Annotated[int | None, integer()]
Raw = Annotated[Json, SkipValidation()]
Flag = Annotated[bool | None, _or_none(core_schema.bool_schema(strict=True))]


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the reader of a model, built at its first use."""
    return TypeAdapter(kind)


def read_model(kind: Callable[..., T], values: Json, **overrides: object) -> T:
    """Return a model; `raw` keeps the values as CML sent them."""
    model: T = adapter(kind).validate_python({**values, **overrides, "raw": values})
    return model
