"""The `static` runtime: existing workers that are listed in the pool's settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from scheduling.capacity.runtimes.addresses import normalized_address
from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    ConfiguredRuntime,
    Health,
    Instance,
    InstanceState,
    LaunchRequest,
    ListedWorker,
    Offering,
)
from scheduling.capacity.runtimes.health import probe_cml
from scheduling.options import Options, rows, text, texts_by_name

# An address without user name or password: everyone can read the settings.
ADDRESS = r"https?://[^\s/@?#]+(/[^\s@?#]*)?"


@dataclass(frozen=True)
class StaticWorker(Options):
    name: Annotated[
        str,
        text(
            "a name of letters, digits, dots, dashes and underscores",
            pattern=r"[A-Za-z0-9][\w.-]*",
            longest=100,
        ),
    ]
    endpoint: Annotated[str, text("an address like https://cml-1.example.org", pattern=ADDRESS)]
    ca: Annotated[str, text(empty=True)] = ""
    labels: Annotated[Mapping[str, str], texts_by_name()] = field(default_factory=dict)


@dataclass(frozen=True)
class StaticOptions(Options):
    workers: Annotated[tuple[StaticWorker, ...], rows()]
    labels: Annotated[Mapping[str, str], texts_by_name()] = field(default_factory=dict)

    def problems(self) -> dict[str, str]:
        names: set[str] = set()
        by_address: dict[str, StaticWorker] = {}
        for worker in self.workers:
            if worker.name in names:
                return {"workers": f"Two workers are named “{worker.name}”."}
            names.add(worker.name)
            first = by_address.setdefault(normalized_address(worker.endpoint), worker)
            if first is not worker:
                both = f"{first.name} and {worker.name} have the same address"
                return {"workers": f"{both}: {worker.endpoint}."}
        return {}


class StaticRuntime(ConfiguredRuntime[StaticOptions]):
    """Hands out the listed workers; nothing is started or terminated.

    Consequences of `launches = False`:
    - `launch` assigns the worker that the request names, else the one of the slot's number (`…-01` the first,
      and so on), else the next in the list that is not in `request.workers_in_use`. If all are in use, it
      raises `CapacityRefused`. It has no effect outside LCM, so after a lost response it is called again.
    - `describe` lists every worker as running. The workers carry no tags, so slot and token are empty:
      workers are matched to slots by id (the worker's name) alone and are never orphans.
    - `terminate` does nothing, and the worker stays listed: a terminating slot is empty at once.
    - If a worker is no longer listed, its slot treats it like an instance that vanished.
    """

    launches = False
    options_type: ClassVar[type[StaticOptions]] = StaticOptions

    @property
    def most_slots(self) -> int:
        return len(self.options.workers)

    def offerings(self) -> Iterable[Offering]:
        return [Offering("listed")]

    def launch(self, request: LaunchRequest) -> Instance:
        workers = self.options.workers
        first = (_number_in(request.slot_name) - 1) % len(workers)
        intended = [worker for worker in workers if worker.name == request.worker]
        for worker in (*intended, *workers[first:], *workers[:first]):
            if worker.name not in request.workers_in_use:
                return _instance(worker, request.slot_id, request.token)
        raise CapacityRefused(f"All {len(workers)} listed workers are in use.")

    def describe(self) -> Iterable[Instance]:
        return [_instance(worker) for worker in self.options.workers]

    def terminate(self, instance_id: str) -> None:
        """Do nothing: LCM does not own the worker."""

    def labels_of(self, instance_id: str) -> dict[str, str]:
        """Return the pool's labels, overridden by the worker's labels."""
        labels = next((worker.labels for worker in self.options.workers if worker.name == instance_id), {})
        return {**super().labels_of(instance_id), **labels}

    def workers(self) -> Sequence[ListedWorker]:
        shared = self.options.labels
        return [
            ListedWorker(worker.name, worker.endpoint, {**shared, **worker.labels})
            for worker in self.options.workers
        ]

    def probe(self, instance: Instance) -> Health:
        for worker in self.options.workers:
            if worker.name == instance.id:
                return probe_cml(worker.endpoint, worker.ca)
        return Health(False, f"{instance.id} is no longer listed in the pool's settings.")


def _instance(worker: StaticWorker, slot_id: str = "", token: str = "") -> Instance:
    return Instance(worker.name, InstanceState.RUNNING, slot_id, token, worker.endpoint)


def _number_in(slot_name: str) -> int:
    match = re.search(r"(\d+)$", slot_name)
    return int(match[1]) if match else 1
