"""Slots that could be launched now, and the intent of each launch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from scheduling.capacity.offerings import open_offerings
from scheduling.capacity.runtimes.base import ListedWorker, RuntimeAdapter
from scheduling.placement.framework.demand import SlotSupply
from scheduling.placement.framework.model import Node
from scheduling.selectors.new_slots import NewSlots, free_workers


@dataclass(frozen=True)
class LaunchIntent:
    """The purpose of a launch."""

    # For non-preemptible work.
    on_demand_only: bool = False
    # The listed worker to use, and its position in the list.
    worker: str = ""
    number: int = 0


ANY_LAUNCH = LaunchIntent()


class LaunchableSlots:
    """New slots by kind: as many as may be launched, or as there are free listed workers."""

    def __init__(self, new_slots: NewSlots, runtime: RuntimeAdapter, *, most: int, now: datetime) -> None:
        self._new_slots, self._most = new_slots, most
        self._has_choice = len(new_slots.markets) > 1
        # While all on-demand offerings are refused, only launches for preemptible work continue.
        self._on_demand = self._has_choice and bool(
            open_offerings(new_slots.pool, runtime, now, on_demand_only=True)
        )
        self._listed = free_workers(new_slots)
        self._free: dict[tuple[tuple[str, str], ...], deque[tuple[int, ListedWorker]]] = {}
        for number, worker in self._listed:
            self._free.setdefault(_key(worker.labels), deque()).append((number, worker))

    @property
    def lacks_on_demand(self) -> bool:
        """Return whether the pool allows on-demand offerings and all were recently refused."""
        return self._has_choice and not self._on_demand

    def supplies(self, *, refused: bool = False) -> list[SlotSupply]:
        """Return what may be requested now; with `refused` also recently refused offerings."""
        found = []
        for node in self._new_slots.templates:
            most = self._most
            if self._new_slots.workers:
                most = min(most, len(self._free.get(_key(node.labels), ())))
            found += [SlotSupply(each, most) for each in self._markets(node, self._on_demand or refused)]
        return found

    def _markets(self, node: Node, on_demand: bool) -> Iterable[Node]:
        """Return spot and on-demand, or only one of them if there is no choice."""
        if not self._has_choice:
            return [node]
        spot, on_demand_node = replace(node, spot=True), replace(node, spot=False)
        return [spot, on_demand_node] if on_demand else [spot]

    def take_for_node(self, node: Node) -> LaunchIntent:
        """Return a launch that creates such a slot, and remove it from the stock."""
        on_demand_only = self._has_choice and not node.spot
        if not self._new_slots.workers:
            return LaunchIntent(on_demand_only)
        number, worker = self._free[_key(node.labels)].popleft()
        return LaunchIntent(on_demand_only, worker.name, number)

    def of_any_kind(self, count: int) -> list[LaunchIntent]:
        if not self._new_slots.workers:
            return [ANY_LAUNCH] * min(count, self._most)
        return [
            LaunchIntent(worker=worker.name, number=number) for number, worker in islice(self._listed, count)
        ]


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))
