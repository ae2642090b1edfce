"""Options of a simulated controller, which can be given as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self

VERSIONS = {"2.9": "2.9.1+build.7", "2.10": "2.10.0+build.3"}


class OptionError(ValueError):
    """An option is unknown or has an invalid value."""


@dataclass(frozen=True)
class ControllerOptions:
    """Version, users, durations, capacity, and how often labs are disturbed.

    `boot_seconds` is the mean boot time; nodes vary around it. `edit_percent` of the labs are edited without
    their owner's knowledge `edit_after_seconds` after their start. In `overuse_percent` of the labs a node
    uses more than it was allocated. Which labs these are depends only on `seed` and the title.
    """

    version: str = "2.10"
    users: Mapping[str, str] = field(default_factory=lambda: {"admin": "simulated"})
    token_seconds: float = 8 * 3600.0
    ready_after_seconds: float = 0.0
    latency_seconds: float = 0.0
    queue_seconds: float = 0.5
    starting_seconds: float = 0.5
    boot_seconds: float = 5.0
    stop_seconds: float = 0.5
    cpus: float = 64.0
    memory_mb: int = 256 * 1024
    disk_gb: int = 4000
    seed: int = 1
    edit_percent: float = 0.0
    edit_after_seconds: float = 20.0
    overuse_percent: float = 0.0

    def __post_init__(self) -> None:
        if self.version not in VERSIONS:
            raise OptionError(f"version must be one of {', '.join(VERSIONS)}, not {self.version!r}.")
        if not self.users or not all(
            isinstance(name, str) and name and isinstance(password, str)
            for name, password in self.users.items()
        ):
            raise OptionError("users must map at least one name to its password.")
        for option in fields(self):
            if option.name in ("version", "users", "seed"):
                continue
            value = getattr(self, option.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
                raise OptionError(f"{option.name} must be a number from 0, not {value!r}.")

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """Read options from a JSON object. Missing options take their defaults."""
        if not isinstance(values, dict):
            raise OptionError("Options must be a JSON object.")
        known = {option.name for option in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise OptionError(f"Unknown option {unknown[0]!r}. Known options: {', '.join(sorted(known))}.")
        if not isinstance(values.get("users", {}), dict) or not isinstance(values.get("seed", 1), int):
            raise OptionError("users must be an object and seed a whole number.")
        return cls(**values)

    def to_dict(self) -> dict[str, object]:
        """Return all options as JSON, without passwords."""
        shown = {option.name: getattr(self, option.name) for option in fields(self)}
        return {**shown, "users": sorted(self.users)}

    @property
    def version_text(self) -> str:
        return VERSIONS[self.version]

    @property
    def is_modern(self) -> bool:
        """Return whether CML has the features of 2.10: bulk interfaces, STARTING, memory and disk usage."""
        return self.version != "2.9"
