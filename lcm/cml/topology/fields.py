"""Reading the fields of a mapping: each reader returns a value of the right type or notes the problem."""

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
    """A mapping of the document, where it stands, and where to note what is wrong with it."""

    values: dict[str, object]
    path: str
    problems: Problems

    def place(self, key: str) -> str:
        """The path of one of the fields."""
        return f"{self.path}.{key}" if self.path else key

    def problem(self, key: str, message: str) -> None:
        """Note what is wrong with a field."""
        self.problems.add(self.place(key), message)

    def text(self, key: str, *, limit: int = MAX_TEXT) -> str | None:
        """A short text such as a label, or None when it is not given."""
        return short_text(self.values.get(key), self.place(key), self.problems, limit=limit)

    def required_text(self, key: str, *, limit: int = MAX_TEXT) -> str:
        """A short text that must be there."""
        return self._present(key, self.text(key, limit=limit))

    def identifier(self, key: str) -> str | None:
        """An id: text, or a number that is taken as text."""
        value = self.values.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(key, limit=MAX_ID)

    def required_identifier(self, key: str) -> str:
        """An id that must be there."""
        return self._present(key, self.identifier(key))

    def free_text(self, key: str, *, limit: int) -> str:
        """A text for people, which may look like anything; empty when it is not given."""
        value = self.values.get(key)
        if isinstance(value, list | dict):
            self.problem(key, f"{key} must be text, not {display_value(value)}.")
            return ""
        text = "" if value is None else as_text(value)
        if len(text) > limit:
            self.problem(key, too_long(key, text, limit))
            return ""
        return text

    def whole(self, key: str, *, low: int, high: int, unit: str = "") -> int | None:
        """A whole number in a range, or None when it is not given."""
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
        """A position on the canvas; 0 when it is not given."""
        value = self.values.get(key)
        if value is None:
            return 0
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_COORDINATE:
            return round(value)
        self.problem(key, f"{key} must be a number up to {MAX_COORDINATE:,}, not {display_value(value)}.")
        return 0

    def items(self, key: str, *, limit: int) -> list[object]:
        """The entries of a list; none when it is not given or too long."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.problem(key, f"{key} must be a list, not {display_value(value)}.")
        elif len(value) > limit:
            self.problem(key, f"There are {len(value):,} {key}: at most {limit:,} are allowed.")
        else:
            return value
        return []

    def sections(self, key: str, *, limit: int) -> Iterator["Section"]:
        """The mappings in a list, each knowing its place."""
        for index, item in enumerate(self.items(key, limit=limit)):
            path = f"{self.place(key)}[{index}]"
            if isinstance(item, dict):
                yield Section(item, path, self.problems)
            else:
                self.problems.add(path, f"Each entry of {key} must be a mapping, not {display_value(item)}.")

    def section(self, key: str) -> "Section":
        """A mapping inside this one; empty when it is not given."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            self.problem(key, f"{key} must be a mapping, not {display_value(value)}.")
        return Section(value if isinstance(value, dict) else {}, self.place(key), self.problems)

    def _present(self, key: str, value: str | None) -> str:
        """The value; a missing one is a problem unless a wrong one was already noted."""
        if value is None and self.values.get(key) is None:
            self.problem(key, f"{key} is missing.")
        return value or ""


def too_long(name: str, text: str, limit: int) -> str:
    """Return the sentence about a text over its limit."""
    start = display_value(text)
    return f"{name} is longer than {limit:,} characters: it has {len(text):,} and starts with {start}."


def short_text(value: object, path: str, problems: Problems, *, limit: int = MAX_TEXT) -> str | None:
    """A text of one line and limited length; None, with the problem noted, for anything else."""
    name = path.rpartition(".")[2]
    if value is None:
        return None
    if isinstance(value, bool | int | float | UnsupportedScalar):
        problems.add(path, f'{name} must be text: put it in quotes, "{as_text(value)}".')
    elif not isinstance(value, str):
        problems.add(path, f"{name} must be text, not {display_value(value)}.")
    elif not value.strip():
        problems.add(path, f"{name} is empty.")
    elif len(value) > limit:
        problems.add(path, too_long(name, value, limit))
    elif any(unicodedata.category(char) == "Cc" for char in value):
        problems.add(
            path, f"{name} has a line break or control character in it: {display_value(ascii(value))}."
        )
    else:
        return value
    return None
