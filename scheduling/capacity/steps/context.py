"""State shared by the steps of a tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from scheduling.capacity.runtimes.base import RuntimeAdapter
from scheduling.models import Pool
from scheduling.placement.framework.model import Job
from scheduling.selectors.new_slots import NewSlots, new_slots_of


@dataclass
class TickContext:
    """One tick: its pool and time, the results of its steps, and the unmet demand for launching."""

    pool: Pool
    runtime: RuntimeAdapter
    now: datetime
    is_lease_held: Callable[[], bool]
    counts: dict[str, int] = field(default_factory=dict)
    unmet: list[Job] = field(default_factory=list)
    attempts: list[UUID] = field(default_factory=list)
    # Decisions refer to this id; the row of the tick is written when it ends.
    id: UUID = field(default_factory=uuid4)
    plugins: dict[str, Any] = field(default_factory=dict)
    step_ms: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @cached_property
    def new_slots(self) -> NewSlots:
        return new_slots_of(self.pool)

    def count(self, name: str, number: int) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + number
