"""LCM's time: measured with every response, and continued by the monotonic clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

HEADER = "X-LCM-Time"
# Responses that disagree by more than this leave LCM's time in doubt.
STEADY_WITHIN = 2.0
# A skew of this size is a warning.
SKEW_WARNED = 5.0
# The responses of about a minute to an idle controller.
SAMPLES = 16


@dataclass(frozen=True)
class ClockSample:
    """LCM's time minus our monotonic clock: LCM wrote its time between the request and the response."""

    lowest: float
    highest: float


class LcmClock:
    """`wall` is only compared with LCM's time: no decision depends on it once LCM has answered."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.monotonic = monotonic
        self._wall = wall
        self._samples: deque[ClockSample] = deque(maxlen=SAMPLES)

    def note(self, text: str | None, *, sent: float, received: float) -> None:
        """Take the time that LCM wrote into a response to a request sent and received at these moments."""
        try:
            written = datetime.fromisoformat(text or "").timestamp()
        except ValueError:
            return
        self._samples.append(ClockSample(written - received, written - sent))

    def now(self) -> datetime:
        """LCM's time, never ahead of it; before the first response the time of this machine."""
        if not self._samples:
            return datetime.fromtimestamp(self._wall(), UTC)
        return datetime.fromtimestamp(self._offset() + self.monotonic(), UTC)

    @property
    def is_known(self) -> bool:
        """Whether LCM has sent its time."""
        return bool(self._samples)

    @property
    def is_steady(self) -> bool:
        """Whether LCM's time is known, and the latest responses agree on it."""
        if not self.is_known:
            return False
        lowest = max(sample.lowest for sample in self._samples)
        highest = min(sample.highest for sample in self._samples)
        return lowest - highest <= STEADY_WITHIN

    def skew(self) -> float | None:
        """How many seconds this machine's clock is ahead of LCM's; None while LCM's time is unknown."""
        return self._wall() - self.now().timestamp() if self._samples else None

    def problem(self) -> str:
        """Return the problem that an administrator has to correct; empty if there is none."""
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

        LCM writes its time when a response is ready, so that the bound is off by the way back alone. A slow
        response makes sessions end late, never early.
        """
        return max(sample.lowest for sample in self._samples)
