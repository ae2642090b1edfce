"""How long to wait before a process that ended is started again."""

from dataclasses import dataclass

FIRST_DELAY = 1.0
LONGEST_DELAY = 30.0
STEADY_AFTER = 60.0


@dataclass
class Backoff:
    """Seconds double from 1 to 30; a run of a minute or more starts over at 1."""

    delay: float = 0.0

    def after_run(self, seconds: float) -> float:
        steady = seconds >= STEADY_AFTER or not self.delay
        self.delay = FIRST_DELAY if steady else min(self.delay * 2, LONGEST_DELAY)
        return self.delay
