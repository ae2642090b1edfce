"""What every step of a tick works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from scheduling.models import Pool
from scheduling.placement import Claim
from scheduling.runtimes.base import RuntimeAdapter


@dataclass
class TickContext:
    """One tick: its pool and moment, what the steps counted, and what placing left over for launching."""

    pool: Pool
    runtime: RuntimeAdapter
    now: datetime
    still_mine: Callable[[], bool]
    counts: dict[str, int] = field(default_factory=dict)
    unmet: list[Claim] = field(default_factory=list)
    attempts: list[UUID] = field(default_factory=list)

    def count(self, name: str, number: int) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + number
