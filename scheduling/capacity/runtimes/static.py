"""The `static` runtime: existing workers that are listed in the pool's settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from scheduling.capacity.runtimes.addresses import normalized_address
from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    Health,
    Instance,
    InstanceState,
    LaunchRequest,
    ListedWorker,
    Offering,
)
from scheduling.capacity.runtimes.configured import ConfiguredRuntime
from scheduling.capacity.runtimes.health import probe_cml
from scheduling.capacity.runtimes.registry import register_runtime
from scheduling.options import rows, text, texts_by_name

# An address without user name or password: everyone can read the settings.
ADDRESS = r"https?://[^\s/@?#]+(/[^\s@?#]*)?"


@dataclass(frozen=True)
class StaticWorker:
    name: str = text(
        expected="a name of letters, digits, dots, dashes and underscores",
        pattern=r"[A-Za-z0-9][\w.-]*",
        longest=100,
    )
    endpoint: str = text(expected="an address like https://cml-1.example.org", pattern=ADDRESS)
    ca: str = text("")
    labels: Mapping[str, str] = texts_by_name()


@dataclass(frozen=True)
class StaticOptions:
    workers: tuple[StaticWorker, ...] = rows(StaticWorker)
    labels: Mapping[str, str] = texts_by_name()

    def problems(self) -> dict[str, str]:
        names: set[str] = set()
        places: dict[str, StaticWorker] = {}
        for worker in self.workers:
            if worker.name in names:
                return {"workers": f"Two workers are named “{worker.name}”."}
            names.add(worker.name)
            first = places.setdefault(normalized_address(worker.endpoint), worker)
            if first is not worker:
                both = f"{first.name} and {worker.name} have the same address"
                return {"workers": f"{both}: {worker.endpoint}."}
        return {}


@register_runtime("static")
class StaticRuntime(ConfiguredRuntime[StaticOptions]):
    """Hands out the listed workers; nothing is started or terminated.

    Consequences of `launches = False`:
    - `launch` assigns the worker that the request names, else the one of the slot's number (`…-01` the first,
      and so on), else the next in the list that is not in `request.taken`; if all are taken it raises
      `CapacityRefused`. It changes nothing outside, so a lost response needs no search: call again.
    - `describe` lists every worker as running. Nothing outside carries our tags, so slot and token are empty:
      workers are matched to slots by id (the worker's name) alone and are never orphans.
    - `terminate` does nothing, and the worker stays listed: a terminating slot is empty at once.
    - A slot whose worker is no longer listed has lost it, like an instance that vanished.
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
        meant = [worker for worker in workers if worker.name == request.worker]
        for worker in (*meant, *workers[first:], *workers[:first]):
            if worker.name not in request.taken:
                return _instance(worker, request.slot_id, request.token)
        raise CapacityRefused(f"All {len(workers)} listed workers are in use.")

    def describe(self) -> Iterable[Instance]:
        return [_instance(worker) for worker in self.options.workers]

    def terminate(self, instance_id: str) -> None:
        """Do nothing: LCM does not own the worker."""

    def labels_of(self, instance_id: str) -> dict[str, str]:
        """Return the pool's labels, overridden by the worker's labels."""
        own = next((worker.labels for worker in self.options.workers if worker.name == instance_id), {})
        return {**super().labels_of(instance_id), **own}

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
    found = re.search(r"(\d+)$", slot_name)
    return int(found[1]) if found else 1
