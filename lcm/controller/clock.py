"""LCM's time: measured with every response, and continued by the monotonic clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

HEADER = "X-LCM-Time"
# If responses disagree by more than this, LCM's time counts as unknown.
STEADY_WITHIN = 2.0
# A skew of this many seconds is logged as a warning.
SKEW_WARNED = 5.0
# About one minute of responses for an idle controller.
SAMPLES = 16


@dataclass(frozen=True)
class ClockSample:
    """Bounds of LCM's time minus the local monotonic clock, from one request and its response."""

    lowest: float
    highest: float


class LcmClock:
    """Estimate of LCM's time. Once LCM has responded, `wall` serves only to measure the skew."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.monotonic = monotonic
        self._wall = wall
        self._samples: deque[ClockSample] = deque(maxlen=SAMPLES)

    def sample(self, text: str | None, *, sent: float, received: float) -> None:
        """Add a sample: `text` is the time LCM wrote, `sent` and `received` are monotonic times."""
        try:
            written = datetime.fromisoformat(text or "").timestamp()
        except ValueError:
            return
        self._samples.append(ClockSample(written - received, written - sent))

    def now(self) -> datetime:
        """Return LCM's time, never ahead of it. Before the first response, return local time."""
        if not self._samples:
            return datetime.fromtimestamp(self._wall(), UTC)
        return datetime.fromtimestamp(self._offset() + self.monotonic(), UTC)

    @property
    def is_known(self) -> bool:
        """Return whether LCM has sent its time."""
        return bool(self._samples)

    @property
    def is_steady(self) -> bool:
        """Return whether LCM's time is known and recent responses agree on it."""
        if not self.is_known:
            return False
        lowest = max(sample.lowest for sample in self._samples)
        highest = min(sample.highest for sample in self._samples)
        return lowest - highest <= STEADY_WITHIN

    def skew(self) -> float | None:
        """Return how many seconds the local clock is ahead of LCM's; None while LCM's time is unknown."""
        return self._wall() - self.now().timestamp() if self._samples else None

    def problem(self) -> str:
        """Return the clock problem an administrator must correct, or an empty string."""
        skew = self.skew()
        if skew is None:
            return f"LCM's time is unknown: its responses carry no {HEADER}"
        if not self.is_steady:
            return "LCM's time is unsteady: its latest responses disagree"
        if abs(skew) >= SKEW_WARNED:
            side = "ahead of" if skew > 0 else "behind"
            return f"the clock of this machine is {abs(skew):.0f} s {side} LCM's"
        return ""

    def _offset(self) -> float:
        """Return the highest lower bound.

        LCM writes its time when a response is ready, so the bound is off only by the return trip. A slow
        response makes sessions end late, never early.
        """
        return max(sample.lowest for sample in self._samples)
