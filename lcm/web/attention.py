"""Items that need attention; the overview shows the items of all apps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from lcm.extensions import Extension

Value = TypeVar("Value")


class FleetSnapshot:
    """The fleet at one point in time; figures that several readers need are queried once."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._read: dict[Callable[[datetime], Any], Any] = {}

    def read_once(self, read: Callable[[datetime], Value]) -> Value:
        if read not in self._read:
            self._read[read] = read(self.now)
        value: Value = self._read[read]
        return value


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


AttentionReader = Callable[[FleetSnapshot], Iterable[AttentionItem]]


def attention_items(snapshot: FleetSnapshot) -> list[AttentionItem]:
    """Return the items that need attention, most severe first, then oldest first."""
    items = [item for reader in Extension.installed().attention for item in reader(snapshot)]
    order = {"bad": 0, "warn": 1, "busy": 2}
    return sorted(items, key=lambda item: (order.get(item.tone, 3), item.since or snapshot.now))
