"""What needs a person: each app registers how to find its lines; the overview shows them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Need:
    """One line: what it is, where to go, since when, and how bad (`bad`, `warn`, `busy`)."""

    text: str
    url: str
    since: datetime | None
    tone: str = "warn"
    more: str = ""


Reader = Callable[[datetime], Iterable[Need]]
_readers: dict[str, Reader] = {}


def register_needs(name: str, reader: Reader) -> None:
    """Called when an app is ready."""
    _readers[name] = reader


def needs(now: datetime) -> list[Need]:
    """Everything that waits for a person, the worst first, then the oldest."""
    found = [need for reader in _readers.values() for need in reader(now)]
    order = {"bad": 0, "warn": 1, "busy": 2}
    return sorted(found, key=lambda need: (order.get(need.tone, 3), need.since or now))
