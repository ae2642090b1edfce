"""Text that a database can hold: no NUL and no half of a surrogate pair. Plain Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

UNSTORABLE = "This has a character that cannot be stored: NUL or half of a surrogate pair."
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def remove_unstorable(text: str) -> str:
    """The text without what cannot be stored; for what others say and nobody here can correct."""
    return _UNSTORABLE.sub("\ufffd", text)


def find_unstorable(value: Any, path: str = "") -> str | None:
    """Where in a nest of values there is text that cannot be stored, like `settings.offerings[0].name`."""
    if isinstance(value, str):
        return path if _UNSTORABLE.search(value) else None
    if isinstance(value, Mapping):
        if any(isinstance(key, str) and _UNSTORABLE.search(key) for key in value):
            return path
        found = (find_unstorable(each, f"{path}.{key}" if path else f"{key}") for key, each in value.items())
    elif isinstance(value, list | tuple):
        found = (find_unstorable(each, f"{path}[{index}]") for index, each in enumerate(value))
    else:
        return None
    return next((each for each in found if each is not None), None)
