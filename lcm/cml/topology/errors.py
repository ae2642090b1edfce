"""Problems of a topology, each with its path."""

from dataclasses import dataclass
from typing import NoReturn

from lcm.cml.records import Record

DOCUMENT = "topology"
MAX_ERRORS = 100


@dataclass(frozen=True)
class FieldError(Record):
    """One problem: its path (`nodes[2].label`, or `topology` for the whole document) and a message."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class TopologyError(ValueError):
    """The topology cannot be imported. `errors` lists all problems."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = errors

    def as_fields(self) -> dict[str, list[str]]:
        """Return the messages by path, for forms and the API."""
        by_path: dict[str, list[str]] = {}
        for error in self.errors:
            by_path.setdefault(error.path, []).append(error.message)
        return by_path


class Problems:
    """Collects the problems and warnings of one import."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []

    def add(self, path: str, message: str) -> None:
        """Record a problem. Raise TopologyError after MAX_ERRORS problems."""
        self.errors.append(FieldError(path or DOCUMENT, message))
        if len(self.errors) >= MAX_ERRORS:
            self.fatal(f"Only the first {MAX_ERRORS} problems are listed.")

    def warn(self, sentence: str) -> None:
        """Record a warning that does not stop the import."""
        self.warnings.append(sentence)

    def fatal(self, message: str, path: str = DOCUMENT) -> NoReturn:
        """Raise TopologyError at once, because the rest cannot be read."""
        raise TopologyError([*self.errors, FieldError(path or DOCUMENT, message)])

    def raise_if_any(self) -> None:
        """Raise TopologyError if a problem was recorded."""
        if self.errors:
            raise TopologyError(self.errors)
