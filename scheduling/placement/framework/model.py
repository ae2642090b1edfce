"""What a cycle looks at: nodes (slots), queues (domains, projects, people), jobs (reservations), tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from scheduling.placement.framework.amounts import GPU, NOTHING, UNIT, Amounts, total

ROOT = ""
FOREVER = float("inf")


class Gang(StrEnum):
    """How the tasks of a job are placed: always all of them or none."""

    TOGETHER = "together"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Task:
    """One kernel: what it asks for."""

    name: str
    request: Amounts
    ports: int = 0


@dataclass(frozen=True, slots=True)
class JobPart:
    """What a job has on one node: its tasks there and the share of each GPU."""

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
    """A reservation: it waits, or runs where `parts` say."""

    id: str
    queue: str
    tasks: tuple[Task, ...]
    # The person's own queue below it, where shares go down to people.
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
    # What the cycle before said of it, to tell what is new.
    verdict: str = ""
    # It was asked to stop and is on its way out.
    leaving: bool = False

    @property
    def leaf(self) -> str:
        """The queue it stands in when it waits."""
        return self.owner or self.queue

    @property
    def request(self) -> Amounts:
        return self.tasks[0].request if len(self.tasks) == 1 else total(task.request for task in self.tasks)

    @property
    def whole(self) -> Task:
        """All its tasks as one, which is how those that stay together are placed."""
        if len(self.tasks) == 1:
            return self.tasks[0]
        return Task(self.name or self.id, self.request, sum(task.ports for task in self.tasks))

    @property
    def is_spread(self) -> bool:
        """Its tasks are placed one by one."""
        return self.gang is Gang.SPREAD and len(self.tasks) > 1

    @property
    def label(self) -> str:
        return self.name or self.id


@dataclass(frozen=True, slots=True)
class Node:
    """A slot: what it has, and what is off limits on it whoever asks."""

    name: str
    capacity: Amounts
    id: str = ""
    system: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    spot: bool = False
    cordoned: bool = False
    # Until when it is certain to be there, in seconds since the epoch.
    until: float = FOREVER
    max_leases: int = 1_000
    ports: int = 6_000
    # Ports of its range that no job of the snapshot accounts for.
    leaked: int = 0
    # The GPUs one by one; one a whole unit of capacity when not given.
    devices: tuple[int, ...] = ()
    # What is held by those who are not among the jobs of the snapshot.
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
    """A domain, a project or a person: weight and factor among its siblings, and what it may have at most."""

    name: str
    parent: str = ROOT
    weight: float = 1.0
    factor: float = 1.0
    quota: Mapping[str, int] = field(default_factory=dict)
    # It has no share of its own: the queues below it compete with its siblings.
    joins: bool = False


def effective_parent(name: str, queues: Mapping[str, Queue]) -> str:
    """Return the queue below which one is ordered: the first above it with a share of its own."""
    parent = queues[name].parent
    while parent in queues and queues[parent].joins:
        parent = queues[parent].parent
    return parent


@dataclass(frozen=True)
class Snapshot:
    """The input of one cycle; plain values that can be kept and replayed."""

    now: float
    nodes: Sequence[Node]
    queues: Mapping[str, Queue]
    jobs: Sequence[Job]
    # What slots would be that are launched for a job, one of each kind; none when nothing can be launched.
    templates: Sequence[Node] = ()
    pool: str = ""
    # How many nodes there can be at once; None when nobody knows.
    max_nodes: int | None = None
    # What slots on their way will be, one of each kind.
    coming: Sequence[Node] = ()

    @property
    def waiting(self) -> Iterable[Job]:
        return (job for job in self.jobs if not job.parts)

    @property
    def running(self) -> Iterable[Job]:
        return (job for job in self.jobs if job.parts)
