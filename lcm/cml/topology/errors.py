"""What is wrong with a topology: every problem with its place, not just the first."""

from dataclasses import dataclass
from typing import NoReturn

from lcm.cml.records import Record

DOCUMENT = "topology"
MAX_ERRORS = 100


@dataclass(frozen=True)
class FieldError(Record):
    """One problem: the place it was found (`nodes[2].label`, or `topology` for the whole) and a sentence."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class TopologyError(ValueError):
    """The topology cannot be imported; `errors` says why."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = errors

    def as_fields(self) -> dict[str, list[str]]:
        """The messages by path, as forms and the API show them."""
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
        """Remember a problem; give up when there are too many to be read by anyone."""
        self.errors.append(FieldError(path or DOCUMENT, message))
        if len(self.errors) >= MAX_ERRORS:
            self.fatal(f"There are more problems: only the first {MAX_ERRORS} are listed.")

    def warn(self, sentence: str) -> None:
        """Remember something worth knowing that does not stop the import."""
        self.warnings.append(sentence)

    def fatal(self, message: str, path: str = DOCUMENT) -> NoReturn:
        """Stop here: what follows cannot be read."""
        raise TopologyError([*self.errors, FieldError(path or DOCUMENT, message)])

    def raise_if_any(self) -> None:
        """End the import if a problem was found."""
        if self.errors:
            raise TopologyError(self.errors)
