"""Input of a cycle: nodes (slots), queues (domains, projects, users), jobs (reservations) and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from scheduling.placement.framework.amounts import GPU, NOTHING, UNIT, Amounts, total

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
    request: Amounts
    ports: int = 0


@dataclass(frozen=True, slots=True)
class JobPart:
    """The share of a job on one node: its tasks there and the share of each GPU."""

    node: str
    tasks: tuple[Task, ...]
    devices: tuple[tuple[int, int], ...] = ()

    @property
    def request(self) -> Amounts:
        return self.tasks[0].request if len(self.tasks) == 1 else total(task.request for task in self.tasks)

    @property
    def ports(self) -> int:
        return self.tasks[0].ports if len(self.tasks) == 1 else sum(task.ports for task in self.tasks)


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
    def request(self) -> Amounts:
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

    name: str
    capacity: Amounts
    id: str = ""
    system: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    spot: bool = False
    cordoned: bool = False
    # Guaranteed lifetime, in seconds since the epoch.
    until: float = FOREVER
    max_leases: int = 1_000
    ports: int = 6_000
    # Taken ports of its range that no job of the snapshot accounts for.
    leaked: int = 0
    # Capacity of each GPU; by default one GPU per whole unit.
    devices: tuple[int, ...] = ()
    # Amounts held by jobs that are not in the snapshot.
    taken: Amounts = NOTHING
    taken_leases: int = 0
    taken_devices: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> str:
        return self.id or self.name

    def gpus(self) -> tuple[int, ...]:
        if self.devices:
            return self.devices
        whole, rest = divmod(self.capacity[GPU], UNIT)
        return (UNIT,) * whole + ((rest,) if rest else ())


@dataclass(frozen=True, slots=True)
class Queue:
    """A domain, project or user: weight and factor among its siblings, and its quota."""

    name: str
    parent: str = ROOT
    weight: float = 1.0
    factor: float = 1.0
    quota: Mapping[str, int] = field(default_factory=dict)
    # It has no share of its own: its child queues compete with its siblings.
    joins: bool = False


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
