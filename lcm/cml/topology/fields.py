"""Typed access to the fields of a mapping. Each method returns a valid value or records a problem."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.cml.topology.errors import Problems
from lcm.cml.topology.limits import MAX_ID
from lcm.cml.topology.yaml_scalars import UnsupportedScalar, as_text, display_value

MAX_TEXT = 250
MAX_COORDINATE = 1_000_000


@dataclass(frozen=True)
class Section:
    """A mapping of the document, its path, and where to record its problems."""

    values: dict[str, object]
    path: str
    problems: Problems

    def path_of(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def problem(self, key: str, message: str) -> None:
        """Record a problem of a field."""
        self.problems.add(self.path_of(key), message)

    def text(self, key: str, *, limit: int = MAX_TEXT) -> str | None:
        """Return a short text such as a label, or None if it is not set."""
        return short_text(self.values.get(key), self.path_of(key), self.problems, limit=limit)

    def required_text(self, key: str, *, limit: int = MAX_TEXT) -> str:
        """Return a required short text."""
        return self._present(key, self.text(key, limit=limit))

    def identifier(self, key: str) -> str | None:
        """Return an id: text, or a number read as text."""
        value = self.values.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(key, limit=MAX_ID)

    def required_identifier(self, key: str) -> str:
        """Return a required id."""
        return self._present(key, self.identifier(key))

    def free_text(self, key: str, *, limit: int) -> str:
        """Return free text for people; empty if it is not set."""
        value = self.values.get(key)
        if isinstance(value, list | dict):
            self.problem(key, f"{key} must be text, not {display_value(value)}.")
            return ""
        text = "" if value is None else as_text(value)
        if len(text) > limit:
            self.problem(key, too_long(key, text, limit))
            return ""
        return text

    def integer(self, key: str, *, low: int, high: int, unit: str = "") -> int | None:
        """Return a whole number in a range, or None if it is not set."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        measured = f"{high:,} {unit}".strip()
        self.problem(
            key, f"{key} must be a whole number from {low} to {measured}, not {display_value(value)}."
        )
        return None

    def coordinate(self, key: str) -> int:
        """Return a position on the canvas; 0 if it is not set."""
        value = self.values.get(key)
        if value is None:
            return 0
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_COORDINATE:
            return round(value)
        self.problem(key, f"{key} must be a number up to {MAX_COORDINATE:,}, not {display_value(value)}.")
        return 0

    def items(self, key: str, *, limit: int) -> list[object]:
        """Return the entries of a list; empty if it is not set or too long."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.problem(key, f"{key} must be a list, not {display_value(value)}.")
        elif len(value) > limit:
            self.problem(key, f"{key} has {len(value):,} entries; at most {limit:,} are allowed.")
        else:
            return value
        return []

    def sections(self, key: str, *, limit: int) -> Iterator["Section"]:
        """Yield the mappings in a list, each with its path."""
        for index, item in enumerate(self.items(key, limit=limit)):
            path = f"{self.path_of(key)}[{index}]"
            if isinstance(item, dict):
                yield Section(item, path, self.problems)
            else:
                self.problems.add(path, f"Each entry of {key} must be a mapping, not {display_value(item)}.")

    def section(self, key: str) -> "Section":
        """Return a nested mapping; empty if it is not set."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            self.problem(key, f"{key} must be a mapping, not {display_value(value)}.")
        return Section(value if isinstance(value, dict) else {}, self.path_of(key), self.problems)

    def _present(self, key: str, value: str | None) -> str:
        """Return the value. A missing value is a problem unless an invalid one was already recorded."""
        if value is None and self.values.get(key) is None:
            self.problem(key, f"{key} is missing.")
        return value or ""


def too_long(name: str, text: str, limit: int) -> str:
    """Return the error message for a text over its limit."""
    start = display_value(text)
    return f"{name} is longer than {limit:,} characters: it has {len(text):,} and starts with {start}."


def short_text(value: object, path: str, problems: Problems, *, limit: int = MAX_TEXT) -> str | None:
    """Return a single-line text of limited length, or None with a problem recorded."""
    name = path.rpartition(".")[2]
    if value is None:
        return None
    if isinstance(value, bool | int | float | UnsupportedScalar):
        problems.add(path, f'{name} must be text. Put it in quotes: "{as_text(value)}".')
    elif not isinstance(value, str):
        problems.add(path, f"{name} must be text, not {display_value(value)}.")
    elif not value.strip():
        problems.add(path, f"{name} is empty.")
    elif len(value) > limit:
        problems.add(path, too_long(name, value, limit))
    elif any(unicodedata.category(char) == "Cc" for char in value):
        problems.add(
            path, f"{name} must not contain a line break or control character: {display_value(ascii(value))}."
        )
    else:
        return value
    return None
