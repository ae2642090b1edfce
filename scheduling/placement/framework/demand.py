"""The number and kinds of new slots that waiting jobs need."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge
from typing import NamedTuple

from scheduling.placement.framework.model import Gang, Job, Node, Task

# The kinds of slots that suit a job, in the order of use; as keys for lookup.
Kinds = Mapping[int, None]


@dataclass(frozen=True, slots=True)
class SlotSupply:
    """Equal slots: an empty one as a sample, and how many there can be."""

    node: Node
    count: int


class SlotsNeeded(NamedTuple):
    """The number of incoming slots that the jobs would use, and the new slots they need in addition."""

    claimed: int
    new: Sequence[Node]


def slots_needed(
    jobs: Iterable[Job], coming: Iterable[SlotSupply], new: Iterable[SlotSupply] = (), limit: int = 0
) -> SlotsNeeded:
    """Pack the jobs into incoming slots first, then into new ones up to a limit.

    Within a priority, jobs that few slots suit come first, and each job takes the least specialized suitable
    slot, so that the result is the same once the new slots are incoming. Jobs that fit no slot are ignored.
    """
    filling = _Packer(_least_specialized_first(coming), _least_specialized_first(new), limit)
    for job in _most_constrained_first(jobs, filling.stock):
        if not filling.openable:
            break
        filling.add(job)
    return SlotsNeeded(filling.claimed, filling.new)


def _least_specialized_first(supplies: Iterable[SlotSupply]) -> list[SlotSupply]:
    """Sort spot slots before on-demand ones, and slots with few labels first."""
    return sorted(supplies, key=lambda supply: (not supply.node.spot, len(supply.node.labels), _kind(supply)))


def _most_constrained_first(jobs: Iterable[Job], stock: Iterable[SlotSupply]) -> Iterable[Job]:
    """Sort by priority, then jobs that few slots suit first; unchanged if all slots are equal."""
    if len({_kind(supply) for supply in stock}) <= 1:
        return jobs
    return sorted(jobs, key=lambda job: (-job.priority, job.preemptible, -len(job.labels)))


def _kind(supply: SlotSupply) -> tuple[bool, tuple[tuple[str, str], ...]]:
    return supply.node.spot, tuple(sorted(supply.node.labels.items()))


class _Packer:
    """Opens slots as tasks need them."""

    def __init__(self, coming: Sequence[SlotSupply], new: Sequence[SlotSupply], limit: int) -> None:
        self.stock = [*coming, *new]
        self.claimed = 0
        self.new: list[Node] = []
        self._first_new, self._limit = len(coming), limit
        self._left = [supply.count for supply in self.stock]
        self.openable = sum(self._left[: len(coming)]) + min(sum(self._left[len(coming) :]), limit)
        self._opened: list[_NewSlot] = []
        # Slots only fill up, so tasks of one shape share a pointer past the slots without space.
        self._pointers: dict[Hashable, int] = {}
        self._kinds: dict[Hashable, Kinds] = {}

    def add(self, job: Job) -> None:
        kind = (job.system, job.preemptible, job.labels)
        suitable = self._kinds.get(kind)
        if suitable is None:
            numbers = (number for number, supply in enumerate(self.stock) if _suits(job, supply.node))
            suitable = self._kinds[kind] = dict.fromkeys(numbers)
        if suitable:
            for task in job.tasks if job.gang is Gang.SPREAD else (job.whole,):
                self._put(task, suitable, (task.request, task.ports, kind))

    def _put(self, task: Task, suitable: Kinds, shape: Hashable) -> None:
        opened = self._opened
        index = self._pointers.get(shape, 0)
        while index < len(opened) and not (opened[index].fits(task) and opened[index].kind in suitable):
            index += 1
        self._pointers[shape] = index
        if index < len(opened) or self._open(task, suitable):
            opened[index].take(task)

    def _open(self, task: Task, suitable: Kinds) -> bool:
        """Open another slot, of the first available kind that can hold the task."""
        for number in self._in_stock(suitable):
            slot = _NewSlot(number, self.stock[number].node)
            if slot.fits(task):
                self._left[number] -= 1
                self.openable -= 1
                self._opened.append(slot)
                if number < self._first_new:
                    self.claimed += 1
                else:
                    self.new.append(self.stock[number].node)
                return True
        return False

    def _in_stock(self, suitable: Kinds) -> Iterator[int]:
        end = self._first_new if len(self.new) == self._limit else len(self.stock)
        return (number for number in suitable if number < end and self._left[number])


def _suits(job: Job, node: Node) -> bool:
    """Return whether the slot is of a kind that suits the job, whatever is free on it."""
    return (
        job.system in ("", node.system)
        and (job.preemptible or not node.spot)
        and all(node.labels.get(key) == value for key, value in job.labels)
    )


class _NewSlot:
    """The free amounts of a slot that was empty."""

    __slots__ = ("free", "kind", "leases", "ports")

    def __init__(self, kind: int, node: Node) -> None:
        self.kind = kind
        self.free: Sequence[int] = node.capacity
        self.leases, self.ports = node.max_leases, node.ports

    def fits(self, task: Task) -> bool:
        return self.leases >= 1 and self.ports >= task.ports and all(map(ge, self.free, task.request))

    def take(self, task: Task) -> None:
        self.free = [left - requested for left, requested in zip(self.free, task.request, strict=True)]
        self.leases -= 1
        self.ports -= task.ports
