"""Settings and arguments: JSON read into frozen dataclasses, with a message for each invalid value.

A dataclass declares its settings with the functions below (`number`, `flag`, `text`, …). Each returns a field
with a default and a check; `read_options` does the rest.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from enum import StrEnum
from typing import Any, TypeVar

Options = TypeVar("Options")
Reader = Callable[[str, Any], Any]
REQUIRED: Any = MISSING


class InvalidOptions(Exception):
    """Invalid settings: the key (empty: the whole document) and a message each."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = dict(problems)


def number(default: float | None, low: float, high: float) -> Any:
    """Declare a number within bounds; a default of None makes it optional."""

    def read(key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise wrong_type(key, value, f"a number from {low:g} to {high:g}")
        return value

    return setting(default, read)


def flag(default: bool) -> Any:
    def read(key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise wrong_type(key, value, "true or false")
        return value

    return setting(default, read)


def text(
    default: str = REQUIRED, *, expected: str = "text", pattern: str = r"(?s:.+)", longest: int = 300
) -> Any:
    """Declare text that matches a pattern; it may be empty only if the default is."""

    def read(key: str, value: Any) -> str:
        if isinstance(value, str) and value == default:
            return value
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise wrong_type(key, value, expected)
        if len(value) > longest:
            raise InvalidOptions(
                {key: f"“{key}” has {len(value)} characters; at most {longest} are allowed."}
            )
        return value

    return setting(default, read)


def choice(of: type[StrEnum], default: StrEnum) -> Any:
    def read(key: str, value: Any) -> StrEnum:
        if value not in of.__members__.values():
            raise wrong_type(key, value, f"one of {', '.join(of)}")
        return of(value)

    return setting(default, read)


def texts() -> Any:
    """Declare a list of texts, empty by default."""

    def read(key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise wrong_type(key, value, "a list of texts")
        return tuple(value)

    return setting((), read)


def texts_by_name() -> Any:
    """Declare a mapping of names to texts, empty by default."""

    def read(key: str, value: Any) -> dict[str, str]:
        if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
            raise wrong_type(key, value, "an object of names and texts")
        return dict(value)

    return field(default_factory=dict, metadata={"read": read})


def rows(of: type[Any], *, required: bool = True) -> Any:
    """Declare a list of objects with settings of their own; `required` demands at least one."""

    def read(key: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise wrong_type(key, value, "a list of objects")
        if required and not value:
            raise InvalidOptions({key: f"“{key}” must name at least one."})
        found: list[Any] = []
        problems: dict[str, str] = {}
        for index, item in enumerate(value):
            try:
                found.append(read_options(of, item, f"{key}[{index}]"))
            except InvalidOptions as error:
                problems |= error.problems
        if problems:
            raise InvalidOptions(problems)
        return tuple(found)

    return setting(REQUIRED if required else (), read)


def read_options(of: type[Options], values: Any, path: str = "") -> Options:
    """Return the settings as their dataclass; raise `InvalidOptions` with every problem."""
    if not isinstance(values, Mapping):
        raise wrong_type(path, values, "an object of names and values")
    prefix = f"{path}." if path else ""
    known: dict[str, Field[Any]] = {each.name: each for each in fields(of)}  # type: ignore[arg-type]
    problems = {f"{prefix}{key}": _unknown(f"{key}", known) for key in values if key not in known}
    found: dict[str, Any] = {}
    for name, declared in known.items():
        try:
            if name in values:
                found[name] = _value(declared, f"{prefix}{name}", values[name])
            elif declared.default is MISSING and declared.default_factory is MISSING:
                raise InvalidOptions({f"{prefix}{name}": f"“{prefix}{name}” is required."})
        except InvalidOptions as error:
            problems |= error.problems
    if not problems:
        made = of(**found)
        check: Callable[[], Mapping[str, str]] = getattr(made, "problems", dict)
        problems = {f"{prefix}{key}": sentence for key, sentence in check().items()}
        if not problems:
            return made
    raise InvalidOptions(problems)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return “; did you mean …?” if a choice is close, otherwise the choices."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, 1, 0.7)
    return f"; did you mean “{close[0]}”?" if close else f". There are: {', '.join(names) or 'none'}."


def setting(default: Any, read: Reader) -> Any:
    """Declare a field with its own reader, which raises `InvalidOptions`."""
    return field(default=default, metadata={"read": read})


def _value(declared: Field[Any], key: str, value: Any) -> Any:
    if value is None and declared.default is None:
        return None
    # A plugin field without a check accepts any value.
    return declared.metadata["read"](key, value) if "read" in declared.metadata else value


def _unknown(key: str, known: Iterable[str]) -> str:
    return f"There is no setting “{key}”{suggestion(key, known)}"


def wrong_type(key: str, value: Any, expected: str) -> InvalidOptions:
    """Return the error for a value of the wrong type."""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return InvalidOptions(
        {key: f"{f'“{key}”' if key else 'The settings'} must be {expected}, but is {_shortened(shown)}."}
    )


def _shortened(shown: str, longest: int = 60) -> str:
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
