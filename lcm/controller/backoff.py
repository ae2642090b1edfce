"""Exponential backoff with jitter."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Backoff:
    """Delays in seconds that double from `first` to `longest`, each with jitter over its upper half."""

    first: float = 1.0
    longest: float = 30.0
    failures: int = 0
    draw: Callable[[], float] = field(default=random.random, repr=False)

    def next(self) -> float:
        base = min(self.first * 2.0 ** min(self.failures, 20), self.longest)
        self.failures += 1
        return max(self.first, base * (0.5 + self.draw() / 2))

    def reset(self) -> None:
        self.failures = 0
