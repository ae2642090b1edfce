"""A manual clock and a fake cloud runtime that records its calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    Health,
    Instance,
    InstanceState,
    Interruption,
    LaunchRequest,
    Offering,
    ResponseLost,
    RuntimeAdapter,
    RuntimeFailure,
)

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class Clock:
    """A clock that moves only through `advance`."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> datetime:
        self.now += timedelta(**delta)
        return self.now


class NoMetrics:
    def observe(self, pool: Any, report: Any) -> None:
        """Discard the value."""


class FakeRuntime(RuntimeAdapter):
    """A runtime with instances in memory; a configured fault occurs at the next call."""

    def __init__(self, clock: Clock, *offerings: Offering) -> None:
        super().__init__("fake", {})
        self.clock = clock
        self.on_offer = list(offerings) or [Offering("large")]
        self.calls: list[tuple[str, str]] = []
        self.made: dict[str, Instance] = {}
        self.launched = 0
        self.error: Exception | None = None
        self.refused: set[str] = set()
        self.loses_answers = False
        self.blind: RuntimeFailure | None = None
        self.boots = True
        self.ends_at_once = True
        self.health = Health(True, version="2.9.1")
        self.notices: list[Interruption] = []

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:  # noqa: ARG003
        return {}

    def offerings(self) -> Iterable[Offering]:
        return self.on_offer

    def launch(self, request: LaunchRequest) -> Instance:
        self.calls.append(("launch", request.offering.name))
        if self.error is not None:
            raise self.error
        if request.offering.name in self.refused:
            raise CapacityRefused(f"no {request.offering.name}")
        instance = self._made_for(request)
        if self.loses_answers:
            raise ResponseLost("the connection broke")
        return instance

    def describe(self) -> Iterable[Instance]:
        self.calls.append(("describe", ""))
        if self.blind is not None:
            raise self.blind
        for instance in self.made.values():
            if self.boots and instance.state == InstanceState.PENDING:
                self.turn(instance.id, InstanceState.RUNNING)
        return list(self.made.values())

    def claim(self, instance_ids: Sequence[str]) -> None:
        self.calls.append(("claim", " ".join(instance_ids)))
        if self.error is not None:
            raise self.error
        for key in instance_ids:
            self.made[key] = replace(self.made[key], claimed=True)

    def terminate(self, instance_id: str) -> None:
        self.calls.append(("terminate", instance_id))
        if instance_id in self.made:
            self.turn(instance_id, InstanceState.GONE if self.ends_at_once else InstanceState.STOPPING)

    def probe(self, instance: Instance) -> Health:
        self.calls.append(("probe", instance.id))
        return self.health

    def interruptions(self) -> Iterable[Interruption]:
        return list(self.notices)

    def count(self, call: str) -> int:
        return Counter(name for name, _ in self.calls)[call]

    @property
    def alive(self) -> list[Instance]:
        return [each for each in self.made.values() if each.state != InstanceState.GONE]

    def turn(self, instance_id: str, state: InstanceState) -> None:
        self.made[instance_id] = replace(self.made[instance_id], state=state)

    def vanish(self, instance_id: str) -> None:
        del self.made[instance_id]

    def add(self, instance_id: str, **fields: Any) -> Instance:
        """Add an instance that was launched outside of LCM."""
        values = {"state": InstanceState.RUNNING, "slot_id": "", "token": "", "launched_at": self.clock()}
        self.made[instance_id] = Instance(id=instance_id, **{**values, **fields})
        return self.made[instance_id]

    def _made_for(self, request: LaunchRequest) -> Instance:
        for instance in self.made.values():
            if instance.token == request.token:
                return instance
        self.launched += 1
        number = self.launched
        return self.add(
            f"i-{number:04}",
            state=InstanceState.PENDING,
            slot_id=request.slot_id,
            token=request.token,
            endpoint=f"https://i-{number:04}",
            market=request.offering.market,
        )
