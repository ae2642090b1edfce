"""Checks for text that the database can store: no NUL, no lone surrogate. Plain Python."""

from __future__ import annotations

import re
from collections.abc import Mapping

UNSTORABLE = "This contains a character that cannot be stored (NUL or a lone surrogate)."
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def remove_unstorable(text: str) -> str:
    """Replace characters that cannot be stored; for text from external systems that no user can correct."""
    return _UNSTORABLE.sub("\ufffd", text)


def find_unstorable(value: object, path: str = "") -> str | None:
    """Return the path of the first text that cannot be stored, such as `settings.offerings[0].name`."""
    if isinstance(value, str):
        return path if _UNSTORABLE.search(value) else None
    if isinstance(value, Mapping):
        if any(isinstance(key, str) and _UNSTORABLE.search(key) for key in value):
            return path
        paths = (find_unstorable(each, f"{path}.{key}" if path else f"{key}") for key, each in value.items())
    elif isinstance(value, list | tuple):
        paths = (find_unstorable(each, f"{path}[{index}]") for index, each in enumerate(value))
    else:
        return None
    return next((each for each in paths if each is not None), None)
