"""Detection of unknown keys in request bodies."""

from __future__ import annotations

from typing import Any

from rest_framework.serializers import Serializer

UNKNOWN = "Unknown field."


def unknown_keys(field: Any, data: Any) -> dict[str, Any]:
    """Return an error for each key that the serializer does not accept, also in nested objects and lists."""
    if isinstance(field, Serializer):
        if not isinstance(data, dict):
            return {}
        known = {name: each for name, each in field.fields.items() if not each.read_only}
        unknown = {str(name): [UNKNOWN] for name in data if name not in known}
        return unknown | _nested((name, each, data.get(name)) for name, each in known.items())
    child = getattr(field, "child", None)
    if child is None:
        return {}
    if isinstance(data, dict):
        return _nested((name, child, value) for name, value in data.items())
    if isinstance(data, list):
        return _nested((str(index), child, value) for index, value in enumerate(data))
    return {}


def _nested(parts: Any) -> dict[str, Any]:
    return {name: found for name, field, value in parts if (found := unknown_keys(field, value))}
