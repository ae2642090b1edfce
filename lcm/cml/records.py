"""What values of topologies and observations have in common: frozen, and with a JSON form."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True)
class Record:
    """A frozen value that can say itself in JSON."""

    def to_dict(self) -> dict[str, object]:
        """The fields as JSON-safe values: Decimals as text, moments in ISO 8601, tuples as lists."""
        return {field.name: to_json_value(getattr(self, field.name)) for field in fields(self)}


def to_json_value(value: object) -> object:
    """A value as JSON knows it."""
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
