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
        self.available_offerings = list(offerings) or [Offering("large")]
        self.calls: list[tuple[str, str]] = []
        self.instances: dict[str, Instance] = {}
        self.launch_count = 0
        self.error: Exception | None = None
        self.refused_offerings: set[str] = set()
        self.loses_responses = False
        self.describe_error: RuntimeFailure | None = None
        self.boots = True
        self.terminates_at_once = True
        self.health = Health(True, version="2.9.1")
        self.notices: list[Interruption] = []

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:  # noqa: ARG003
        return {}

    def offerings(self) -> Iterable[Offering]:
        return self.available_offerings

    def launch(self, request: LaunchRequest) -> Instance:
        self.calls.append(("launch", request.offering.name))
        if self.error is not None:
            raise self.error
        if request.offering.name in self.refused_offerings:
            raise CapacityRefused(f"no {request.offering.name}")
        instance = self._instance_for(request)
        if self.loses_responses:
            raise ResponseLost("the connection broke")
        return instance

    def describe(self) -> Iterable[Instance]:
        self.calls.append(("describe", ""))
        if self.describe_error is not None:
            raise self.describe_error
        for instance in self.instances.values():
            if self.boots and instance.state == InstanceState.PENDING:
                self.set_state(instance.id, InstanceState.RUNNING)
        return list(self.instances.values())

    def claim(self, instance_ids: Sequence[str]) -> None:
        self.calls.append(("claim", " ".join(instance_ids)))
        if self.error is not None:
            raise self.error
        for key in instance_ids:
            self.instances[key] = replace(self.instances[key], claimed=True)

    def terminate(self, instance_id: str) -> None:
        self.calls.append(("terminate", instance_id))
        if instance_id in self.instances:
            self.set_state(
                instance_id, InstanceState.GONE if self.terminates_at_once else InstanceState.STOPPING
            )

    def probe(self, instance: Instance) -> Health:
        self.calls.append(("probe", instance.id))
        return self.health

    def interruptions(self) -> Iterable[Interruption]:
        return list(self.notices)

    def count(self, call: str) -> int:
        return Counter(name for name, _ in self.calls)[call]

    @property
    def alive(self) -> list[Instance]:
        return [each for each in self.instances.values() if each.state != InstanceState.GONE]

    def set_state(self, instance_id: str, state: InstanceState) -> None:
        self.instances[instance_id] = replace(self.instances[instance_id], state=state)

    def vanish(self, instance_id: str) -> None:
        del self.instances[instance_id]

    def add(self, instance_id: str, **fields: Any) -> Instance:
        """Add an instance."""
        values = {"state": InstanceState.RUNNING, "slot_id": "", "token": "", "launched_at": self.clock()}
        self.instances[instance_id] = Instance(id=instance_id, **{**values, **fields})
        return self.instances[instance_id]

    def _instance_for(self, request: LaunchRequest) -> Instance:
        for instance in self.instances.values():
            if instance.token == request.token:
                return instance
        self.launch_count += 1
        number = self.launch_count
        return self.add(
            f"i-{number:04}",
            state=InstanceState.PENDING,
            slot_id=request.slot_id,
            token=request.token,
            endpoint=f"https://i-{number:04}",
            market=request.offering.market,
        )
