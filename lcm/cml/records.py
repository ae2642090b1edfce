"""Base class of frozen values with a JSON form."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from pydantic import ConfigDict


@dataclass(frozen=True)
class Record:
    """A frozen value with a JSON form. Read with pydantic, a record has no other fields."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON values: Decimals as text, times in ISO 8601, tuples as lists."""
        return {field.name: to_json_value(getattr(self, field.name)) for field in fields(self)}


def to_json_value(value: object) -> object:
    """Return a value as JSON."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    return value
