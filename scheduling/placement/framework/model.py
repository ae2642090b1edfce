"""Input of a cycle: nodes (slots), queues (domains, projects, users), jobs (reservations) and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from scheduling.options import Options
from scheduling.placement.framework import snapshot_fields as doc
from scheduling.placement.framework.amounts import GPU, NOTHING, UNIT, Units, total

ROOT = ""
FOREVER = float("inf")


class Gang(StrEnum):
    """How the tasks of a job are placed: always all or none."""

    TOGETHER = "together"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Task:
    """One kernel and its request."""

    name: str
    request: Units
    ports: int = 0


@dataclass(frozen=True, slots=True)
class JobPart:
    """The share of a job on one node: its tasks there and the share of each GPU."""

    node: str
    tasks: tuple[Task, ...]
    devices: tuple[tuple[int, int], ...] = ()

    @property
    def request(self) -> Units:
        return self.tasks[0].request if len(self.tasks) == 1 else total(task.request for task in self.tasks)

    @property
    def ports(self) -> int:
        return self.tasks[0].ports if len(self.tasks) == 1 else sum(task.ports for task in self.tasks)

    def joined(self, part: JobPart) -> JobPart:
        """Return both parts, which are on the same node, as one."""
        devices = Counter(dict(self.devices)) + Counter(dict(part.devices))
        return JobPart(self.node, (*self.tasks, *part.tasks), tuple(sorted(devices.items())))


@dataclass(slots=True, eq=False)
class Job:
    """A reservation: it waits, or runs on the nodes of its `parts`."""

    id: str
    queue: str
    tasks: tuple[Task, ...]
    # The user's own queue below it, if shares extend to users.
    owner: str = ""
    name: str = ""
    priority: int = 50
    preemptible: bool = False
    created: float = 0.0
    gang: Gang = Gang.TOGETHER
    system: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    starts: float = 0.0
    ends: float = FOREVER
    # Where it runs; empty while it waits.
    parts: tuple[JobPart, ...] = ()
    # The node that is being cleared for it.
    held_on: str = ""
    # The summary of the previous cycle, to detect changes.
    verdict: str = ""
    # It was evicted and is stopping.
    leaving: bool = False

    @property
    def leaf(self) -> str:
        """Return the queue that it waits in."""
        return self.owner or self.queue

    @property
    def request(self) -> Units:
        return self.tasks[0].request if len(self.tasks) == 1 else total(task.request for task in self.tasks)

    @property
    def whole(self) -> Task:
        """Return all its tasks as one, as jobs that stay on one node are placed."""
        if len(self.tasks) == 1:
            return self.tasks[0]
        return Task(self.name or self.id, self.request, sum(task.ports for task in self.tasks))

    @property
    def is_spread(self) -> bool:
        """Return whether its tasks are placed one by one."""
        return self.gang is Gang.SPREAD and len(self.tasks) > 1

    @property
    def label(self) -> str:
        return self.name or self.id


@dataclass(frozen=True, slots=True)
class Node:
    """A slot: its capacity, and what is unavailable on it to every job."""

    __pydantic_config__: ClassVar = Options.__pydantic_config__

    name: doc.Text
    capacity: doc.Capacity
    id: doc.TextOrNone = ""
    system: doc.TextOrNone = ""
    labels: doc.Labels = field(default_factory=dict)
    spot: doc.Flag = False
    cordoned: doc.Flag = False
    # Guaranteed lifetime, in seconds since the epoch.
    until: doc.TimeOrNever = FOREVER
    max_leases: doc.Leases = 1_000
    ports: doc.Ports = 6_000
    # Taken ports of its range that no job of the snapshot accounts for.
    leaked: doc.Leases = 0
    # Capacity of each GPU; by default one GPU per whole unit.
    devices: doc.Gpus = ()
    # Units held by jobs that are not in the snapshot.
    taken: doc.Capacity = NOTHING
    taken_leases: doc.Leases = 0
    taken_devices: doc.HeldGpus = ()

    @property
    def key(self) -> str:
        return self.id or self.name

    def gpus(self) -> tuple[int, ...]:
        if self.devices:
            return self.devices
        whole, fraction = divmod(self.capacity[GPU], UNIT)
        return (UNIT,) * whole + ((fraction,) if fraction else ())


@dataclass(frozen=True, slots=True)
class Queue:
    """A domain, project or user: weight and factor among its siblings, and its quota."""

    __pydantic_config__: ClassVar = Options.__pydantic_config__

    name: doc.Text
    parent: doc.TextOrNone = ROOT
    weight: doc.Weight = 1.0
    factor: doc.Weight = 1.0
    quota: doc.Quota = field(default_factory=dict)
    # It has no share of its own: its child queues compete with its siblings.
    joins: doc.Flag = False


def effective_parent(name: str, queues: Mapping[str, Queue]) -> str:
    """Return the nearest ancestor with a share of its own."""
    parent = queues[name].parent
    while parent in queues and queues[parent].joins:
        parent = queues[parent].parent
    return parent


@dataclass(frozen=True)
class Snapshot:
    """The input of one cycle; plain values that can be stored and replayed."""

    now: float
    nodes: Sequence[Node]
    queues: Mapping[str, Queue]
    jobs: Sequence[Job]
    # Sample slots that a launch could create, one per kind; empty if nothing can be launched.
    templates: Sequence[Node] = ()
    pool: str = ""
    # The maximum number of nodes; None if unknown.
    max_nodes: int | None = None
    # Incoming slots as they will be, one per kind.
    coming: Sequence[Node] = ()

    @property
    def waiting(self) -> Iterable[Job]:
        return (job for job in self.jobs if not job.parts)

    @property
    def running(self) -> Iterable[Job]:
        return (job for job in self.jobs if job.parts)
