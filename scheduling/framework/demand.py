"""How many new slots would help."""

from __future__ import annotations

from collections.abc import Iterable

from scheduling.framework.amounts import Amounts
from scheduling.framework.model import Gang, Job, Node, Task


def slots_needed(jobs: Iterable[Job], empty: Node, limit: int) -> int:
    """Slots like this one that the jobs would fill, up to a limit; what never fits counts nothing."""
    rooms: list[_Room] = []
    # Rooms only fill up, so tasks of one shape share a pointer: what had no room before has none now.
    pointers: dict[tuple[Amounts, int], int] = {}
    for job in jobs if limit > 0 else ():
        if not _suits(job, empty):
            continue
        for task in job.tasks if job.gang is Gang.SPREAD else (job.whole,):
            if not _Room(empty).takes(task):
                continue
            shape = (task.request, task.ports)
            index = pointers.get(shape, 0)
            while index < len(rooms) and not rooms[index].takes(task):
                index += 1
            if index == len(rooms):
                if len(rooms) == limit:
                    return limit
                rooms.append(_Room(empty))
            pointers[shape] = index
            rooms[index].take(task)
    return len(rooms)


def _suits(job: Job, node: Node) -> bool:
    """Whether such a slot is the kind the job asks for, whatever is free on it."""
    return (
        job.system in ("", node.system)
        and (job.preemptible or not node.spot)
        and all(node.labels.get(key) == value for key, value in job.labels)
    )


class _Room:
    """What is left of a new slot."""

    __slots__ = ("free", "leases", "ports")

    def __init__(self, node: Node) -> None:
        self.free = list(node.capacity)
        self.leases, self.ports = node.max_leases, node.ports

    def takes(self, task: Task) -> bool:
        cpu, memory, storage, gpu = task.request
        free = self.free
        return (
            self.leases >= 1
            and self.ports >= task.ports
            and cpu <= free[0]
            and memory <= free[1]
            and storage <= free[2]
            and gpu <= free[3]
        )

    def take(self, task: Task) -> None:
        self.free = [left - asked for left, asked in zip(self.free, task.request, strict=True)]
        self.leases -= 1
        self.ports -= task.ports
