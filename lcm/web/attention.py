"""Items that need attention: each app registers a reader, the overview shows all items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

Found = TypeVar("Found")


class FleetSnapshot:
    """The fleet at one point in time; figures that several readers need are queried once."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._read: dict[Callable[[datetime], Any], Any] = {}

    def read_once(self, read: Callable[[datetime], Found]) -> Found:
        if read not in self._read:
            self._read[read] = read(self.now)
        found: Found = self._read[read]
        return found


@dataclass(frozen=True)
class AttentionItem:
    """One item that needs attention: text, link, start time and severity (`bad`, `warn`, `busy`).

    `**…**` in the text is shown strong.
    """

    text: str
    url: str
    since: datetime | None
    tone: str = "warn"
    more: str = ""
    shape: str = "tri"


Reader = Callable[[FleetSnapshot], Iterable[AttentionItem]]
_readers: dict[str, Reader] = {}


def register_attention(name: str, reader: Reader) -> None:
    """Register a reader of attention items; call it from `AppConfig.ready`."""
    _readers[name] = reader


def attention_items(snapshot: FleetSnapshot) -> list[AttentionItem]:
    """Return the items that need attention, most severe first, then oldest first."""
    found = [item for reader in _readers.values() for item in reader(snapshot)]
    order = {"bad": 0, "warn": 1, "busy": 2}
    return sorted(found, key=lambda item: (order.get(item.tone, 3), item.since or snapshot.now))
