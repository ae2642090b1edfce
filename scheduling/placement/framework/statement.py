"""Operation log of an action: it can be discarded or committed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from scheduling.placement.framework.model import Job, JobPart

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession


class OperationKind(StrEnum):
    ALLOCATE = "allocate"
    EVICT = "evict"


@dataclass(frozen=True, slots=True)
class Operation:
    """One virtual change: a part of a job is added to a node or removed."""

    kind: OperationKind
    job: Job
    part: JobPart
    leases: int


class PlacementStatement:
    """An operation log over a session; nothing outside the session changes before commit."""

    def __init__(self, ssn: SchedulingSession) -> None:
        self._ssn = ssn
        self.operations: list[Operation] = []

    def allocate(self, job: Job, part: JobPart, *, leases: int = 1) -> None:
        """Put a part of a job on its node."""
        self._do(Operation(OperationKind.ALLOCATE, job, part, leases))

    def evict(self, job: Job) -> None:
        """Remove a running job from all its nodes."""
        for part in job.parts:
            if part.node in self._ssn.nodes.index:
                self._do(Operation(OperationKind.EVICT, job, part, 1))

    def discard(self) -> None:
        """Undo all operations, newest first."""
        while self.operations:
            operation = self.operations.pop()
            taking = operation.kind is OperationKind.EVICT
            self._ssn.change(operation.job, operation.part, operation.leases, taking=taking)

    def commit(self) -> list[Operation]:
        """Return the operations; the session keeps their effect."""
        done, self.operations = self.operations, []
        return done

    def _do(self, operation: Operation) -> None:
        self.operations.append(operation)
        taking = operation.kind is OperationKind.ALLOCATE
        self._ssn.change(operation.job, operation.part, operation.leases, taking=taking)
